// Transfers between global memory and on-chip memory, and within UB.
#pragma once

#include "queue.h"

namespace emu {

// Rows of `row` bytes: where one side of a transfer lies. `pitch` is start to start.
struct Rows {
    uint64_t begin, pitch;
};

inline void touch_rows(Issue& op, Space space, Rows rows, uint64_t count, uint64_t row,
                       bool write) {
    if (rows.pitch == row) row *= count, count = 1;
    for (uint64_t i = 0; i < count; ++i)
        write ? op.write(space, rows.begin + i * rows.pitch, row)
              : op.read(space, rows.begin + i * rows.pitch, row);
}

inline void from_global(Space space, uint64_t to, uint64_t from, uint64_t bytes) {
    Memory& m = memory(space);
    memcpy(m.data + to, reinterpret_cast<const void*>(from), bytes);
    memset(m.undefined + to, 0, bytes);
    memset(m.written + to, 1, bytes);
}

template <class T>
void merge(uint64_t to, const uint8_t* from, uint64_t bytes, Atomic atomic) {
    for (uint64_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
        T old, given;
        memcpy(&old, reinterpret_cast<void*>(to + i), sizeof(T));
        memcpy(&given, from + i, sizeof(T));
        auto a = widen(old), b = widen(given);
        T result = T(atomic == ATOMIC_ADD   ? a + b
                     : atomic == ATOMIC_MAX ? (a > b ? a : b)
                                            : (a < b ? a : b));
        memcpy(reinterpret_cast<void*>(to + i), &result, sizeof(T));
    }
}

template <class T>
void to_global(Space space, uint64_t to, uint64_t from, uint64_t bytes, Atomic atomic,
               const char* name, int line) {
    Memory& m = memory(space);
    for (uint64_t i = 0; i < bytes; ++i) {
        Origin origin = 0;
        load<uint8_t>(space, from + i, name, line, origin);
        if (!origin) continue;
        uses_unspecified(origin, space, from + i, name, line);
        break;
    }
    if (atomic == PLAIN)
        memcpy(reinterpret_cast<void*>(to), m.data + from, bytes);
    else
        merge<T>(to, m.data + from, bytes, atomic);
}

inline void within(Space to_space, uint64_t to, Space from_space, uint64_t from, uint64_t bytes,
                   const char* name, int line) {
    Memory &t = memory(to_space), &f = memory(from_space);
    for (uint64_t i = 0; i < bytes; ++i) {
        Origin origin = 0;
        load<uint8_t>(from_space, from + i, name, line, origin);
        if (origin) t.origin[(to + i) / BLOCK] = origin;
    }
    memmove(t.data + to, f.data + from, bytes);
    memmove(t.undefined + to, f.undefined + from, bytes);
    memset(t.written + to, 1, bytes);
}

inline void check_count(uint64_t blocks, uint64_t most, const char* name, const char* field,
                        int line) {
    if (blocks > most)
        stop(MISUSE, line, "%s: %s is %llu, at most %llu is possible", name, field,
             static_cast<unsigned long long>(blocks), static_cast<unsigned long long>(most));
}

inline uint64_t whole_blocks(uint64_t count, uint64_t size, const char* name, int line) {
    uint64_t bytes = count * size;
    if (bytes % BLOCK)
        stop(MISUSE, line,
             "%s of %llu elements is %llu bytes, no multiple of 32: the hardware copies only %llu; "
             "use "
             "DataCopyPad",
             name, static_cast<unsigned long long>(count), static_cast<unsigned long long>(bytes),
             static_cast<unsigned long long>(bytes / BLOCK * BLOCK));
    return bytes;
}

template <class T>
void load_rows(const AscendC::LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src,
               uint64_t count, uint64_t row, uint64_t src_gap, uint64_t dst_gap, const char* name,
               Line line) {
    check_start(dst, BLOCK, name, "the destination", line.at);
    if (!count || !row) return;
    Rows from{reinterpret_cast<uint64_t>(src.base), row + src_gap}, to{dst.address, row + dst_gap};
    check_bound(src, (count - 1) * from.pitch + row, name, line.at);
    Issue op(name, MTE2, line);
    touch_rows(op, GM, from, count, row, false);
    touch_rows(op, dst.space, to, count, row, true);
    Space space = dst.space;
    op.commit([=] {
        for (uint64_t i = 0; i < count; ++i)
            from_global(space, to.begin + i * to.pitch, from.begin + i * from.pitch, row);
    });
}

template <class T>
void store_rows(const AscendC::GlobalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                uint64_t count, uint64_t row, uint64_t src_pitch, uint64_t dst_gap,
                const char* name, Line line) {
    check_start(src, BLOCK, name, "the source", line.at);
    if (src.space != UB)
        stop(MISUSE, line.at, "%s: there is no path from %s to global memory", name,
             space_name(src.space));
    if (!count || !row) return;
    Rows from{src.address, src_pitch}, to{reinterpret_cast<uint64_t>(dst.base), row + dst_gap};
    check_bound(dst, (count - 1) * to.pitch + row, name, line.at);
    Atomic atomic = launch().atomic;
    Issue op(name, MTE3, line);
    op.atomic(atomic);
    touch_rows(op, src.space, from, count, row, false);
    touch_rows(op, GM, to, count, row, true);
    Space space = src.space;
    op.commit([=] {
        for (uint64_t i = 0; i < count; ++i)
            to_global<T>(space, to.begin + i * to.pitch, from.begin + i * from.pitch, row, atomic,
                         name, line.at);
    });
}

}  // namespace emu

namespace AscendC {

template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count,
              emu::Line line = emu::Line::here()) {
    emu::load_rows(dst, src, 1, emu::whole_blocks(count, sizeof(T), "DataCopy", line.at), 0, 0,
                   "DataCopy", line);
}

template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count,
              emu::Line line = emu::Line::here()) {
    uint64_t bytes = emu::whole_blocks(count, sizeof(T), "DataCopy", line.at);
    emu::store_rows(dst, src, 1, bytes, bytes, 0, "DataCopy", line);
}

template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p,
              emu::Line line = emu::Line::here()) {
    emu::check_count(p.blockCount, 4095, "DataCopy", "blockCount", line.at);
    emu::load_rows(dst, src, p.blockCount, uint64_t{p.blockLen} * 32, uint64_t{p.srcGap} * 32,
                   uint64_t{p.dstGap} * 32, "DataCopy", line);
}

template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p,
              emu::Line line = emu::Line::here()) {
    emu::check_count(p.blockCount, 4095, "DataCopy", "blockCount", line.at);
    uint64_t row = uint64_t{p.blockLen} * 32;
    emu::store_rows(dst, src, p.blockCount, row, row + uint64_t{p.srcGap} * 32,
                    uint64_t{p.dstGap} * 32, "DataCopy", line);
}

template <class T, class U>
void copy_to_bias_table(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                        const DataCopyParams& p, emu::Line line);

// Within UB: an instruction of the vector unit. From L1 to the bias table: one of MTE1.
template <class T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p,
              emu::Line line = emu::Line::here()) {
    using namespace emu;
    if (dst.space == BT) return copy_to_bias_table(dst, src, p, line);
    if (dst.space != UB || src.space != UB)
        stop(MISUSE, line.at, "DataCopy: there is no path from %s to %s", space_name(src.space),
             space_name(dst.space));
    check_count(p.blockCount, 4095, "DataCopy", "blockCount", line.at);
    check_start(dst, BLOCK, "DataCopy", "the destination", line.at);
    check_start(src, BLOCK, "DataCopy", "the source", line.at);
    uint64_t count = p.blockCount, row = uint64_t{p.blockLen} * 32;
    if (!count || !row) return;
    Rows from{src.address, row + uint64_t{p.srcGap} * 32},
        to{dst.address, row + uint64_t{p.dstGap} * 32};
    Issue op("DataCopy", V, line);
    touch_rows(op, UB, from, count, row, false);
    touch_rows(op, UB, to, count, row, true);
    op.commit([=] {
        for (uint64_t i = 0; i < count; ++i)
            within(UB, to.begin + i * to.pitch, UB, from.begin + i * from.pitch, row, "DataCopy",
                   line.at);
    });
}

template <class T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count,
              emu::Line line = emu::Line::here()) {
    uint64_t bytes = emu::whole_blocks(count, sizeof(T), "DataCopy", line.at);
    uint64_t unit = dst.space == emu::BT ? 64 : 32;
    DataCopy(dst, src, DataCopyParams(1, uint16_t(bytes / unit), 0, 0), line);
}

// Rows of any byte length: each lands on whole 32-byte blocks; what lies behind it is unspecified,
// unless isPad is set together with a padding length.
template <class T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& p,
                 const DataCopyPadExtParams<T>& pad, emu::Line line = emu::Line::here()) {
    using namespace emu;
    const char* name = "DataCopyPad";
    check_count(p.blockCount, 4095, name, "blockCount", line.at);
    check_count(p.blockLen, 2097151, name, "blockLen", line.at);
    check_start(dst, BLOCK, name, "the destination", line.at);
    if (dst.space != UB)
        stop(MISUSE, line.at, "%s goes to UB, not to %s", name, space_name(dst.space));
    if (p.blockLen % sizeof(T))
        stop(MISUSE, line.at, "%s: blockLen is %u bytes, no multiple of the %zu of an element",
             name, p.blockLen, sizeof(T));
    uint64_t left = uint64_t{pad.leftPadding} * sizeof(T),
             right = uint64_t{pad.rightPadding} * sizeof(T);
    if (left > BLOCK || right > BLOCK)
        stop(MISUSE, line.at,
             "%s: padding of %llu bytes left and %llu right, at most 32 each is possible", name,
             static_cast<unsigned long long>(left), static_cast<unsigned long long>(right));
    uint64_t count = p.blockCount, row = p.blockLen,
             padded = (left + row + right + BLOCK - 1) / BLOCK * BLOCK;
    if (!count || !row) return;
    Rows from{reinterpret_cast<uint64_t>(src.base), row + p.srcStride},
        to{dst.address, padded + uint64_t{p.dstStride} * BLOCK};
    check_bound(src, (count - 1) * from.pitch + row, name, line.at);
    Issue op(name, MTE2, line);
    touch_rows(op, GM, from, count, row, false);
    touch_rows(op, UB, to, count, padded, true);
    bool defined = pad.isPad && left + right > 0;
    T value = pad.paddingValue;
    op.commit([=] {
        Origin origin = defined || padded == row ? 0 : padding_origin(name, line.at);
        for (uint64_t i = 0; i < count; ++i) {
            uint64_t at = to.begin + i * to.pitch;
            for (uint64_t b = 0; b + sizeof(T) <= padded; b += sizeof(T))
                store<T>(UB, at + b, value, origin);
            from_global(UB, at + left, from.begin + i * from.pitch, row);
        }
    });
}

template <class T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& p,
                 emu::Line line = emu::Line::here()) {
    using namespace emu;
    const char* name = "DataCopyPad";
    check_count(p.blockCount, 4095, name, "blockCount", line.at);
    check_count(p.blockLen, 2097151, name, "blockLen", line.at);
    if (p.blockLen % sizeof(T))
        stop(MISUSE, line.at, "%s: blockLen is %u bytes, no multiple of the %zu of an element",
             name, p.blockLen, sizeof(T));
    uint64_t row = p.blockLen,
             pitch = (row + BLOCK - 1) / BLOCK * BLOCK + uint64_t{p.srcStride} * BLOCK;
    store_rows(dst, src, p.blockCount, row, pitch, p.dstStride, name, line);
}

template <class T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p,
                 const DataCopyPadParams& pad, emu::Line line = emu::Line::here()) {
    T value;
    memcpy(&value, &pad.paddingValue, sizeof(T));
    DataCopyPad(dst, src, DataCopyExtParams(p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0),
                DataCopyPadExtParams<T>(pad.isPad, pad.leftPadding, pad.rightPadding, value), line);
}
template <class T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p,
                 emu::Line line = emu::Line::here()) {
    DataCopyPad(dst, src, DataCopyExtParams(p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0),
                line);
}

}  // namespace AscendC
