// Reductions: of `count` elements, of each repeat, of each 32-byte block, of pairs.
#pragma once

#include "compare.h"

namespace emu {

enum Reduction : uint8_t { SUM, MAX, MIN };

template <class T>
struct Folded {
    T value{};
    int lane = -1;  // of the extreme; -1 while nothing was folded
    Origin origin = 0;
};

// Sums go pairwise, each step rounded to the element type; extremes keep the first of equal values.
template <class T>
Folded<T> fold(Reduction how, const T* values, const bool* active, const Origin* origins, int n) {
    Folded<T> out;
    if (how == SUM) {
        T level[REPEAT_BYTES];
        for (int i = 0; i < n; ++i) {
            level[i] = active[i] ? values[i] : T(0);
            if (active[i]) out.lane = 0, out.origin = origins[i] ? origins[i] : out.origin;
        }
        for (int m = n; m > 1; m = (m + 1) / 2)
            for (int i = 0; i < (m + 1) / 2; ++i)
                level[i] =
                    2 * i + 1 < m ? T(widen(level[2 * i]) + widen(level[2 * i + 1])) : level[2 * i];
        if (n > 0) out.value = level[0];
        return out;
    }
    for (int i = 0; i < n; ++i) {
        if (!active[i]) continue;
        if (origins[i]) out.origin = origins[i];
        bool better = out.lane < 0 || (how == MAX ? widen(values[i]) > widen(out.value)
                                                  : widen(values[i]) < widen(out.value));
        if (better) out.value = values[i], out.lane = i;
    }
    return out;
}

template <class T>
void store_index(uint64_t at, int64_t index, Origin origin) {
    if (sizeof(T) == 2)
        store<uint16_t>(UB, at, static_cast<uint16_t>(index), origin);
    else
        store<uint32_t>(UB, at, static_cast<uint32_t>(index), origin);
}

// One repeat of a source: its lanes as values.
template <class T>
struct RepeatValues {
    T value[REPEAT_BYTES];
    bool active[REPEAT_BYTES];
    Origin origin[REPEAT_BYTES];
    void load_repeat(const Operand& src, const Lanes& lanes, int r, int width, const char* name,
                     int line) {
        for (int l = 0; l < width; ++l) {
            active[l] = lanes.active(l);
            origin[l] = 0;
            if (active[l]) value[l] = load<T>(UB, src.at(r, l), name, line, origin[l]);
        }
    }
};

// The whole of `count` elements into dst[0] (and the index of the extreme into dst[1]).
template <class T>
void reduce_all(const char* name, Line line, Reduction how, const AscendC::LocalTensor<T>& dst,
                const AscendC::LocalTensor<T>& src, const AscendC::LocalTensor<T>& tmp,
                int64_t count, bool index) {
    require_type<T, half, float>(name, line.at);
    if (count < 0)
        stop(MISUSE, line.at, "%s: the count is %lld", name, static_cast<long long>(count));
    if (!count) return;
    uint64_t to = operand(dst, "the destination", name, line.at, 1, 8, sizeof(T)).address;
    uint64_t from = operand(src, "the source", name, line.at).address;
    uint64_t work = operand(tmp, "the work buffer", name, line.at).address, work_bytes = 0;
    constexpr int64_t per_repeat = REPEAT_BYTES / sizeof(T), per_block = BLOCK / sizeof(T);
    auto up = [](int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; };
    if (how != SUM) {  // pairs of value and index for each repeat, and with an index also of each
        // further round
        int64_t elements = up(up(count, per_repeat) / per_repeat * 2, per_block), total = elements;
        for (int64_t n = elements; index && n > per_block; total += n)
            n = up(up(n, per_repeat) / per_repeat * 2, per_block);
        work_bytes = static_cast<uint64_t>(total) * sizeof(T);
    }
    Issue op(name, V, line);
    op.read(UB, from, static_cast<uint64_t>(count) * sizeof(T));
    if (work_bytes) op.write(UB, work, work_bytes);
    op.write(UB, to, sizeof(T) * (index ? 2 : 1));
    op.commit([=] {
        RepeatValues<T> v;
        Folded<T> all;
        int64_t best = 0;
        for (int64_t start = 0; start < count; start += per_repeat) {
            int n = static_cast<int>(count - start < per_repeat ? count - start : per_repeat);
            for (int l = 0; l < n; ++l) {
                v.active[l] = true, v.origin[l] = 0;
                v.value[l] =
                    load<T>(UB, from + (start + l) * sizeof(T), name, line.at, v.origin[l]);
            }
            Folded<T> part = fold(how, v.value, v.active, v.origin, n);
            Origin origin = part.origin ? part.origin : all.origin;
            if (start == 0)
                all = part, best = part.lane;
            else if (how == SUM)
                all.value = T(widen(all.value) + widen(part.value));
            else if (how == MAX ? widen(part.value) > widen(all.value)
                                : widen(part.value) < widen(all.value))
                all.value = part.value, best = start + part.lane;
            all.origin = origin;
        }
        Origin left = work_bytes ? padding_origin(name, line.at) : 0;
        for (uint64_t b = 0; b < work_bytes; ++b) store<uint8_t>(UB, work + b, 0, left);
        store<T>(UB, to, all.value, all.origin);
        if (index) store_index<T>(to + sizeof(T), best, all.origin);
    });
}

// One result for each repeat; strides of dst in results, of src in blocks.
template <class T>
void reduce_repeats(const char* name, Line line, Reduction how, Lanes lanes,
                    const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                    int64_t dst_stride, int64_t block_stride, int64_t repeat_stride,
                    AscendC::ReduceOrder order) {
    using O = AscendC::ReduceOrder;
    require_type<T, half, float>(name, line.at);
    if (how == SUM) order = O::ORDER_ONLY_VALUE;
    for (int64_t stride : {dst_stride, block_stride, repeat_stride})
        if (stride < 0 || stride > 65535)
            stop(MISUSE, line.at, "%s: a stride of %lld, at most 65535 is possible", name,
                 static_cast<long long>(stride));
    if (lanes.nothing()) return;
    constexpr int width = lanes_per_repeat<T>();
    bool pair = order == O::ORDER_VALUE_INDEX || order == O::ORDER_INDEX_VALUE;
    uint64_t unit = pair ? 2 * sizeof(T) : order == O::ORDER_ONLY_INDEX ? 4 : sizeof(T);
    uint64_t to = operand(dst, "the destination", name, line.at, 1, 8, unit).address;
    Operand from = operand(src, "the source", name, line.at, static_cast<int>(block_stride),
                           static_cast<int>(repeat_stride));
    Issue op(name, V, line);
    touch_lanes(op, from, lanes, width, false);
    if (dst_stride == 1)
        op.write(UB, to, unit * lanes.repeats);
    else
        for (int r = 0; r < lanes.repeats; ++r) op.write(UB, to + unit * dst_stride * r, unit);
    op.commit([=] {
        RepeatValues<T> v;
        for (int r = 0; r < lanes.repeats; ++r) {
            v.load_repeat(from, lanes, r, width, name, line.at);
            Folded<T> f = fold(how, v.value, v.active, v.origin, width);
            uint64_t at = to + unit * dst_stride * r;
            if (order == O::ORDER_ONLY_INDEX) {
                store<uint32_t>(UB, at, static_cast<uint32_t>(f.lane), f.origin);
                continue;
            }
            bool index_first = order == O::ORDER_INDEX_VALUE;
            store<T>(UB, at + (index_first ? sizeof(T) : 0), f.value, f.origin);
            if (pair) store_index<T>(at + (index_first ? 0 : sizeof(T)), f.lane, f.origin);
        }
    });
}

// One result for each group of `group` lanes of a repeat; a group without active lanes writes
// nothing.
template <class T>
void reduce_groups(const char* name, Line line, Reduction how, Lanes lanes, int group,
                   const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                   int64_t dst_stride, int64_t block_stride, int64_t repeat_stride) {
    require_type<T, half, float>(name, line.at);
    if (lanes.nothing()) return;
    constexpr int width = lanes_per_repeat<T>();
    int groups = width / group;
    uint64_t unit = groups * sizeof(T);
    uint64_t align = unit < BLOCK ? unit : BLOCK;
    uint64_t to = operand(dst, "the destination", name, line.at, 1, 8, align).address;
    Operand from = operand(src, "the source", name, line.at, static_cast<int>(block_stride),
                           static_cast<int>(repeat_stride));
    auto used = [lanes, group](int g) {
        for (int l = g * group; l < (g + 1) * group; ++l)
            if (lanes.active(l)) return true;
        return false;
    };
    Issue op(name, V, line);
    touch_lanes(op, from, lanes, width, false);
    for (int r = 0; r < lanes.repeats; ++r)
        for (int g = 0; g < groups; ++g)
            if (used(g)) op.write(UB, to + unit * dst_stride * r + g * sizeof(T), sizeof(T));
    op.commit([=] {
        RepeatValues<T> v;
        for (int r = 0; r < lanes.repeats; ++r) {
            v.load_repeat(from, lanes, r, width, name, line.at);
            for (int g = 0; g < groups; ++g) {
                if (!used(g)) continue;
                int l = g * group;
                Folded<T> f = fold(how, v.value + l, v.active + l, v.origin + l, group);
                store<T>(UB, to + unit * dst_stride * r + g * sizeof(T), f.value, f.origin);
            }
        }
    });
}

}  // namespace emu

namespace AscendC {

enum class ReduceType : uint8_t { SUM, MAX, MIN };

template <class T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src,
               const LocalTensor<T>& sharedTmpBuffer, const int32_t count, EMU_LINE) {
    emu::reduce_all("ReduceSum", line, emu::SUM, dst, src, sharedTmpBuffer, count, false);
}
template <class T>
void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src,
               const LocalTensor<T>& sharedTmpBuffer, const int32_t count, bool calIndex = false,
               EMU_LINE) {
    emu::reduce_all("ReduceMax", line, emu::MAX, dst, src, sharedTmpBuffer, count, calIndex);
}
template <class T>
void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src,
               const LocalTensor<T>& sharedTmpBuffer, const int32_t count, bool calIndex = false,
               EMU_LINE) {
    emu::reduce_all("ReduceMin", line, emu::MIN, dst, src, sharedTmpBuffer, count, calIndex);
}

template <class T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,
                    const int32_t repeatTime, const int32_t dstRepStride,
                    const int32_t srcBlkStride, const int32_t srcRepStride, EMU_LINE) {
    emu::require_mask(isSetMask, "WholeReduceSum", line.at);
    emu::reduce_repeats(
        "WholeReduceSum", line, emu::SUM,
        emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), "WholeReduceSum", line.at), dst, src,
        dstRepStride, srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE);
}
template <class T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],
                    const int32_t repeatTime, const int32_t dstRepStride,
                    const int32_t srcBlkStride, const int32_t srcRepStride, EMU_LINE) {
    emu::require_mask(isSetMask, "WholeReduceSum", line.at);
    emu::reduce_repeats(
        "WholeReduceSum", line, emu::SUM,
        emu::Lanes::of_bits(mask, repeatTime, 256 / sizeof(T), "WholeReduceSum", line.at), dst, src,
        dstRepStride, srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE);
}
#define EMU_WHOLE_REDUCE(NAME, HOW)                                                             \
    template <class T, bool isSetMask = true>                                                   \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask,         \
              const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride, \
              const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,   \
              EMU_LINE) {                                                                       \
        emu::require_mask(isSetMask, #NAME, line.at);                                           \
        emu::reduce_repeats(                                                                    \
            #NAME, line, HOW,                                                                   \
            emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), dst, src,   \
            dstRepStride, srcBlkStride, srcRepStride, order);                                   \
    }                                                                                           \
    template <class T, bool isSetMask = true>                                                   \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],      \
              const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride, \
              const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,   \
              EMU_LINE) {                                                                       \
        emu::require_mask(isSetMask, #NAME, line.at);                                           \
        emu::reduce_repeats(                                                                    \
            #NAME, line, HOW,                                                                   \
            emu::Lanes::of_bits(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), dst, src,   \
            dstRepStride, srcBlkStride, srcRepStride, order);                                   \
    }
EMU_WHOLE_REDUCE(WholeReduceMax, emu::MAX)
EMU_WHOLE_REDUCE(WholeReduceMin, emu::MIN)

#define EMU_GROUP_REDUCE(NAME, HOW, GROUP)                                                         \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,      \
              const int32_t mask, const int32_t dstRepStride, const int32_t srcBlkStride,          \
              const int32_t srcRepStride, EMU_LINE) {                                              \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        emu::reduce_groups(#NAME, line, HOW,                                                       \
                           emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                           GROUP, dst, src, dstRepStride, srcBlkStride, srcRepStride);             \
    }                                                                                              \
    template <class T, bool isSetMask = true>                                                      \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,      \
              const uint64_t mask[], const int32_t dstRepStride, const int32_t srcBlkStride,       \
              const int32_t srcRepStride, EMU_LINE) {                                              \
        emu::require_mask(isSetMask, #NAME, line.at);                                              \
        emu::reduce_groups(#NAME, line, HOW,                                                       \
                           emu::Lanes::of_bits(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
                           GROUP, dst, src, dstRepStride, srcBlkStride, srcRepStride);             \
    }
EMU_GROUP_REDUCE(BlockReduceSum, emu::SUM, int(32 / sizeof(T)))
EMU_GROUP_REDUCE(BlockReduceMax, emu::MAX, int(32 / sizeof(T)))
EMU_GROUP_REDUCE(BlockReduceMin, emu::MIN, int(32 / sizeof(T)))
EMU_GROUP_REDUCE(PairReduceSum, emu::SUM, 2)

}  // namespace AscendC
