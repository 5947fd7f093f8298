// How a vector instruction walks its operands: `count` elements in a row, or repeats of 256 bytes
// whose eight 32-byte blocks lie a block stride apart, under a mask of lanes.
#pragma once

#include "copy.h"

namespace emu {

struct Lanes {
    bool counted;
    uint64_t count;  // counted form
    uint64_t mask[2];  // the other forms: the active lanes of each repeat
    int repeats;

    static Lanes of_count(int64_t count, const char* name, int line) {
        if (count < 0)
            stop(MISUSE, line, "%s: the count is %lld", name, static_cast<long long>(count));
        return Lanes{true, static_cast<uint64_t>(count), {}, 0};
    }
    static int checked_repeats(int64_t repeats, const char* name, int line) {
        if (repeats < 0 || repeats > 255)
            stop(MISUSE, line, "%s: %lld repeats, at most 255 are possible", name,
                 static_cast<long long>(repeats));
        return static_cast<int>(repeats);
    }
    // The first `lanes` lanes of each repeat, of `width`.
    static Lanes of_mask(int64_t lanes, int64_t repeats, int width, const char* name, int line) {
        if (lanes < 0 || lanes > width)
            stop(MISUSE, line, "%s: a mask of %lld lanes, this type has %d in a repeat", name,
                 static_cast<long long>(lanes), width);
        auto ones = [](int64_t n) {
            return n <= 0 ? 0 : n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
        };
        return Lanes{
            false, 0, {ones(lanes), ones(lanes - 64)}, checked_repeats(repeats, name, line)};
    }
    static Lanes of_bits(const uint64_t* bits, int64_t repeats, int width, const char* name,
                         int line) {
        return Lanes{
            false, 0, {bits[0], width > 64 ? bits[1] : 0}, checked_repeats(repeats, name, line)};
    }
    bool active(int lane) const { return mask[lane >> 6] >> (lane & 63) & 1; }
    bool nothing() const { return counted ? count == 0 : repeats == 0 || (mask[0] | mask[1]) == 0; }
};

struct Operand {
    const char* role;
    uint64_t address;
    int size;  // bytes of an element
    int block_stride;  // in blocks; the strides count in the repeated forms only
    int repeat_stride;
    uint64_t at(int repeat, int lane) const {
        int per_block = static_cast<int>(BLOCK) / size;
        return address +
               BLOCK *
                   (uint64_t(repeat) * repeat_stride + uint64_t(lane / per_block) * block_stride) +
               uint64_t(lane % per_block) * size;
    }
};

template <class T>
Operand operand(const AscendC::LocalTensor<T>& tensor, const char* role, const char* name, int line,
                int block_stride = 1, int repeat_stride = 8, uint64_t align = BLOCK) {
    check_start(tensor, align, name, role, line);
    if (tensor.space != UB)
        stop(MISUSE, line, "%s: %s lies in %s, not in UB", name, role, space_name(tensor.space));
    return Operand{role, tensor.address, static_cast<int>(sizeof(T)), block_stride, repeat_stride};
}

void touch_lanes(Issue& op, const Operand& o, const Lanes& lanes, int width, bool write);
// Identical or disjoint; in the repeated forms also no repeat reads what an earlier one wrote.
void check_overlap(const char* name, int line, const Operand& dst, const Operand& src,
                   const Lanes& lanes, int width, bool accumulates);

// One vector instruction: dst lane = f(source lanes...), each operand with its own walk.
template <class D, class... S>
struct Elementwise {
    const char* name;
    Line line;
    Lanes lanes;
    int width;
    Operand dst;

    bool folds = false;  // the last source may be what earlier repeats left in dst

    template <class F, class... O>
    void issue(F f, O... sources) {
        if (lanes.nothing()) return;
        size_t left = sizeof...(sources);
        (check_overlap(name, line.at, dst, sources, lanes, width, --left == 0 && folds), ...);
        Issue op(name, V, line);
        (touch_lanes(op, sources, lanes, width, false), ...);
        touch_lanes(op, dst, lanes, width, true);
        Elementwise self = *this;
        op.commit([self, f, sources...] { self.perform(f, sources...); });
    }

    template <class F, class... O>
    void perform(F& f, const O&... sources) const {
        if (lanes.counted) {
            for (uint64_t i = 0; i < lanes.count; ++i)
                one(f, dst.address + i * sizeof(D), (sources.address + i * sizeof(S))...);
            return;
        }
        for (int r = 0; r < lanes.repeats; ++r)
            for (int l = 0; l < width; ++l)
                if (lanes.active(l)) one(f, dst.at(r, l), sources.at(r, l)...);
    }

    template <class F, class... A>
    void one(F& f, uint64_t to, A... from) const {
        Origin origin = 0;
        D value = f(load<S>(UB, from, name, line.at, origin)...);
        store<D>(UB, to, value, origin);
    }
};

template <class... T>
constexpr int lanes_per_repeat() {
    size_t most = 0;
    ((most = sizeof(T) > most ? sizeof(T) : most), ...);
    return static_cast<int>(REPEAT_BYTES / most);
}

}  // namespace emu
