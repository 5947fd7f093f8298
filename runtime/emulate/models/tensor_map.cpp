// Boxes of tensor maps: their rules, and the bytes they move.
#include <algorithm>
#include <cstring>

#include "../include/emulate/codes.h"
#include "../include/emulate/numbers.h"
#include "bulk.h"

namespace emu {

constexpr unsigned char MAGIC[8] = {'T', '2', 'C', 'T', 'M', 'A', 'P', 0};
// Element kinds, as the driver numbers them.
enum Kind { U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, F32_FTZ, TF32 };

// The 128 bytes as they lie.
struct Encoded {
    unsigned char magic[8];
    uint64_t address, dims[5], strides[4];
    uint32_t box[5];
    uint8_t rank, element_bytes, swizzle, element_kind, element_strides[5], is_im2col;
    int8_t lower[3], upper[3];
};

TensorMap read_map(Fiber* f, const void* at, const char* name, void* pc) {
    if (reinterpret_cast<uintptr_t>(at) % 64)
        fail(EMU_MEMORY, format("%s hands %s at %s a tensor map whose address is not a multiple of 64",
                                who(f).c_str(), name, place(pc).c_str()), f);
    Encoded e;
    std::memcpy(&e, at, sizeof e);
    if (std::memcmp(e.magic, MAGIC, sizeof MAGIC))
        fail(EMU_MISUSE, format("%s hands %s at %s something that is no tensor map", who(f).c_str(), name,
                                place(pc).c_str()), f);
    TensorMap map;
    map.address = reinterpret_cast<unsigned char*>(e.address);
    std::memcpy(map.dims, e.dims, sizeof e.dims);
    std::memcpy(map.strides, e.strides, sizeof e.strides);
    std::memcpy(map.box, e.box, sizeof e.box);
    map.rank = e.rank;
    map.element_bytes = e.element_bytes;
    map.swizzle = e.swizzle;
    map.element_kind = e.element_kind;
    std::memcpy(map.element_strides, e.element_strides, sizeof e.element_strides);
    map.is_im2col = e.is_im2col;
    std::memcpy(map.lower, e.lower, sizeof e.lower);
    std::memcpy(map.upper, e.upper, sizeof e.upper);
    return map;
}

// How many elements a box takes along a dimension.
static uint32_t extent(const TensorMap& map, int dim) {
    if (dim >= map.rank) return 1;
    const uint32_t step = dim == 0 ? 1 : map.element_strides[dim];
    return (map.box[dim] + step - 1) / step;
}

static uint32_t row_bytes(const TensorMap& map) { return map.box[0] * map.element_bytes; }

static std::string refusal(const Transfer& t, uint32_t offset) {
    const TensorMap& map = t.map;
    const uint32_t span = map.swizzle ? 16u << map.swizzle : 0, align = span ? span * 8 : 128;
    if (map.rank < 1 || map.rank > 5) return format("its map has %u dimensions", map.rank);
    for (int d = 0; d < map.rank; ++d)
        if (map.box[d] < 1 || map.box[d] > (map.is_im2col && d == 1 ? 1024 : 256))
            return format("its box is %u wide", map.box[d]);
    for (int d = 0; map.is_im2col && d < map.rank - 2; ++d)
        if (t.moved[d] > (map.rank == 4 ? 255 : map.rank == 5 ? 31 : 65535))
            return format("an offset of %d is too far", t.moved[d]);
    if (row_bytes(map) % 16)
        return format("a row of its box has %u bytes, not a multiple of 16", row_bytes(map));
    if (span && row_bytes(map) > span)
        return format("a row of its box has %u bytes, more than the swizzle's %u", row_bytes(map), span);
    if (reinterpret_cast<uintptr_t>(map.address) % 16) return "its tensor is not 16-byte aligned";
    for (int d = 0; d + 1 < map.rank; ++d)
        if (map.strides[d] % 16)
            return format("its tensor has a stride of %llu bytes, not a multiple of 16",
                          (unsigned long long)map.strides[d]);
    if (offset % align)
        return format("its place in shared memory, address %#x, is not a multiple of %u%s", offset, align,
                      span ? format(" as the %u-byte swizzle wants", span).c_str() : "");
    return "";
}

void check_box(Fiber* f, Transfer& t, const char* name, void* pc) {
    const Block* block = arena_of(*f->team, t.shared);
    const std::string why = refusal(t, uint32_t(t.shared - block->arena));
    if (!why.empty())
        fail(EMU_MEMORY, format("%s issues %s at %s: %s", who(f).c_str(), name, place(pc).c_str(),
                                why.c_str()), f, "");
    t.bytes = row_bytes(t.map);
    if (t.map.is_im2col) t.bytes *= t.map.box[1];
    for (int d = 1; !t.map.is_im2col && d < t.map.rank; ++d) t.bytes *= extent(t.map, d);
}

// The rows of an im2col load: pixel after pixel, each step the element stride, along the inner dimension
// between the corners, then along the next ones, then image after image.
template <class Row>
static void for_pixels(const Transfer& t, uint32_t skip, uint32_t end, Row row) {
    const TensorMap& map = t.map;
    const int spatial = map.rank - 2;
    int64_t at[4];
    for (int d = 0; d <= spatial; ++d) at[d] = t.at[d + 1];
    for (uint32_t pixel = 0; pixel < map.box[1]; ++pixel) {
        bool inside = end > skip;
        int64_t bytes = int64_t(t.at[0]) * map.element_bytes;
        for (int d = 0; d <= spatial; ++d) {
            const int64_t x = at[d] + (d < spatial ? t.moved[d] : 0);
            inside &= x >= 0 && x < int64_t(map.dims[d + 1]);
            bytes += x * int64_t(map.strides[d]);
        }
        row(pixel * row_bytes(map), inside ? map.address + bytes : nullptr, skip, end);
        for (int d = 0; d <= spatial; ++d) {
            at[d] += d < spatial ? map.element_strides[d + 1] : 1;
            if (d == spatial || at[d] < int64_t(map.dims[d + 1]) + map.upper[d]) break;
            at[d] = map.lower[d];
        }
    }
}

// Calls row(offset in shared memory, global start of the row or nullptr) for each row of the box;
// the row's valid bytes are those from `skip` up to `end`.
template <class Row>
static void for_rows(const Transfer& t, Row row) {
    const TensorMap& map = t.map;
    const int64_t width = int64_t(map.dims[0]), first = t.at[0];
    const int64_t lo = std::clamp<int64_t>(-first, 0, map.box[0]);
    const int64_t hi = std::clamp<int64_t>(width - first, lo, map.box[0]);
    const auto skip = uint32_t(lo * map.element_bytes), end = uint32_t(hi * map.element_bytes);
    if (map.is_im2col) return for_pixels(t, skip, end, row);
    uint32_t counts[5], index[5] = {};
    for (int d = 0; d < 5; ++d) counts[d] = extent(map, d);
    for (uint32_t offset = 0;; offset += row_bytes(map)) {
        bool inside = end > skip;
        int64_t bytes = first * map.element_bytes;
        for (int d = 1; d < map.rank; ++d) {
            const int64_t x = int64_t(t.at[d]) + int64_t(index[d]) * map.element_strides[d];
            inside &= x >= 0 && x < int64_t(map.dims[d]);
            bytes += x * int64_t(map.strides[d - 1]);
        }
        row(offset, inside ? map.address + bytes : nullptr, skip, end);
        int d = 1;
        while (d < 5 && ++index[d] == counts[d]) index[d++] = 0;
        if (d == 5) return;
    }
}

void touch_global(Fiber& actor, const Transfer& t, Access access, void* pc) {
    if (!checking()) return;
    if (!t.is_tensor) return check(&actor, t.other, t.bytes, access, pc);
    for_rows(t, [&](uint32_t, unsigned char* row, uint32_t skip, uint32_t end) {
        if (row) check(&actor, row + skip, end - skip, access, pc);
    });
}

// ---- moving bytes

// The 16-byte chunk at `offset` of a box moves inside its swizzle period.
static unsigned char* chunk(const Transfer& t, uint32_t offset) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(t.shared) + offset;
    const uintptr_t mask = (1u << t.map.swizzle) - 1;
    return reinterpret_cast<unsigned char*>(at ^ (((at >> 7) & mask) << 4));
}

void load(const Transfer& t) {
    if (!t.is_tensor) {
        std::memcpy(t.shared, t.other, t.bytes);
        return;
    }
    const uint32_t bytes = row_bytes(t.map);
    std::vector<unsigned char> buffer(bytes);
    for_rows(t, [&](uint32_t offset, const unsigned char* row, uint32_t skip, uint32_t end) {
        std::memset(buffer.data(), 0, bytes);
        if (row) std::memcpy(buffer.data() + skip, row + skip, end - skip);
        if (t.map.element_kind == TF32)
            for (uint32_t i = 0; i < bytes; i += 4) {
                uint32_t word;
                std::memcpy(&word, buffer.data() + i, 4);
                word = round_tf32(bits_to_float(word));
                std::memcpy(buffer.data() + i, &word, 4);
            }
        for (uint32_t i = 0; i < bytes; i += 16) std::memcpy(chunk(t, offset + i), buffer.data() + i, 16);
    });
}

std::vector<unsigned char> take(const Transfer& t) {
    std::vector<unsigned char> data(t.bytes);
    if (!t.is_tensor)
        std::memcpy(data.data(), t.shared, t.bytes);
    else
        for (uint32_t i = 0; i < t.bytes; i += 16) std::memcpy(data.data() + i, chunk(t, i), 16);
    return data;
}

// ---- reductions

template <class T>
static T combine(int op, T a, T b) {
    switch (op) {
        case ATOMIC_ADD: return T(a + b);
        case ATOMIC_MIN: return b < a ? b : a;
        case ATOMIC_MAX: return b > a ? b : a;
        default: break;
    }
    if constexpr (T(0.5) == T(0)) {
        switch (op) {
            case ATOMIC_AND: return T(a & b);
            case ATOMIC_OR: return T(a | b);
            case ATOMIC_XOR: return T(a ^ b);
            case ATOMIC_INC: return a >= b ? T(0) : T(a + 1);
            case ATOMIC_DEC: return a == 0 || a > b ? b : T(a - 1);
            default: break;
        }
    }
    return b;
}

template <class T>
static void reduce_as(int op, unsigned char* to, const unsigned char* from, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += sizeof(T)) {
        T a, b;
        std::memcpy(&a, to + i, sizeof a);
        std::memcpy(&b, from + i, sizeof b);
        a = combine(op, a, b);
        std::memcpy(to + i, &a, sizeof a);
    }
}

template <float (*widen)(unsigned short), unsigned short (*narrow)(float)>
static void reduce_small(int op, unsigned char* to, const unsigned char* from, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += 2) {
        uint16_t a, b;
        std::memcpy(&a, to + i, 2);
        std::memcpy(&b, from + i, 2);
        a = narrow(combine(op, widen(a), widen(b)));
        std::memcpy(to + i, &a, 2);
    }
}

static void put(const Transfer& t, unsigned char* to, const unsigned char* from, uint32_t bytes) {
    if (t.reduce < 0) {
        std::memcpy(to, from, bytes);
        return;
    }
    switch (t.kind) {
        case U8: return reduce_as<uint8_t>(t.reduce, to, from, bytes);
        case U16: return reduce_as<uint16_t>(t.reduce, to, from, bytes);
        case U32: return reduce_as<uint32_t>(t.reduce, to, from, bytes);
        case S32: return reduce_as<int32_t>(t.reduce, to, from, bytes);
        case U64: return reduce_as<uint64_t>(t.reduce, to, from, bytes);
        case S64: return reduce_as<int64_t>(t.reduce, to, from, bytes);
        case F16: return reduce_small<half_to_float, float_to_half>(t.reduce, to, from, bytes);
        case BF16: return reduce_small<bfloat_to_float, float_to_bfloat>(t.reduce, to, from, bytes);
        case F64: return reduce_as<double>(t.reduce, to, from, bytes);
        default: return reduce_as<float>(t.reduce, to, from, bytes);
    }
}

void give(const Transfer& t, const std::vector<unsigned char>& data) {
    if (!t.is_tensor) return put(t, t.other, data.data(), t.bytes);
    for_rows(t, [&](uint32_t offset, unsigned char* row, uint32_t skip, uint32_t end) {
        if (row) put(t, row + skip, data.data() + offset + skip, end - skip);
    });
}

}  // namespace emu
