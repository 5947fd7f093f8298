// Compare to bit vectors, and Select by them. Bit i of byte i / 8 (lowest first) belongs to element
// i.
#pragma once

#include "cast.h"

namespace emu {

template <class T>
bool compares(AscendC::CMPMODE mode, T a, T b) {
    using C = AscendC::CMPMODE;
    switch (mode) {
        case C::LT:
            return a < b;
        case C::GT:
            return a > b;
        case C::EQ:
            return a == b;
        case C::LE:
            return a <= b;
        case C::GE:
            return a >= b;
        default:
            return a != b;
    }
}

inline void store_bit(uint64_t base, uint64_t index, bool value, Origin origin) {
    Memory& m = memory(UB);
    uint64_t at = base + index / 8;
    uint8_t bit = static_cast<uint8_t>(1u << (index % 8));
    m.data[at] = static_cast<uint8_t>(value || origin ? m.data[at] | bit : m.data[at] & ~bit);
    m.undefined[at] = static_cast<uint8_t>(origin ? m.undefined[at] | bit : m.undefined[at] & ~bit);
    m.written[at] = 1;
    if (origin) m.origin[at / BLOCK] = origin;
}

inline bool load_bit(uint64_t base, uint64_t index, const char* name, int line, Origin& origin) {
    Memory& m = memory(UB);
    uint64_t at = base + index / 8;
    if (!m.written[at])
        origin = unwritten_origin(UB, at, name, line);
    else if (m.undefined[at] >> (index % 8) & 1)
        origin = m.origin[at / BLOCK];
    return m.data[at] >> (index % 8) & 1;
}

// What a lane of the second operand is: an element of a tensor, or a scalar.
template <class T>
struct Second {
    bool is_scalar;
    T scalar;
    Operand operand;
};

template <class T, class U>
void compare(const char* name, Line line, Lanes lanes, const AscendC::LocalTensor<U>& dst,
             const AscendC::LocalTensor<T>& src, Second<T> second, AscendC::CMPMODE mode,
             int block_stride, int repeat_stride) {
    require_type<T, half, float, int32_t>(name, line.at);
    require_type<U, uint8_t, int8_t>(name, line.at);
    if (Same<T, int32_t>::value && mode != AscendC::CMPMODE::EQ)
        stop(MISUSE, line.at, "%s of int32_t takes EQ only on this core", name);
    if (lanes.counted && lanes.count * sizeof(T) % REPEAT_BYTES)
        stop(
            MISUSE, line.at,
            "%s of %llu elements is %llu bytes, no multiple of 256: the rest would not be compared",
            name, static_cast<unsigned long long>(lanes.count),
            static_cast<unsigned long long>(lanes.count * sizeof(T)));
    constexpr int width = lanes_per_repeat<T>();
    if (!lanes.counted)
        lanes.mask[0] = ~uint64_t{0},
        lanes.mask[1] = width > 64 ? ~uint64_t{0} : 0;  // no effect here
    if (lanes.nothing()) return;
    Operand a = operand(src, "source 0", name, line.at, block_stride, repeat_stride);
    uint64_t to = operand(dst, "the destination", name, line.at).address;
    uint64_t total = lanes.counted ? lanes.count : uint64_t(lanes.repeats) * width;
    Issue op(name, V, line);
    touch_lanes(op, a, lanes, width, false);
    if (!second.is_scalar) touch_lanes(op, second.operand, lanes, width, false);
    op.write(UB, to, (total + 7) / 8);
    op.commit([=] {
        for (uint64_t i = 0; i < total; ++i) {
            int r = static_cast<int>(i / width), l = static_cast<int>(i % width);
            Origin origin = 0;
            uint64_t at = lanes.counted ? a.address + i * sizeof(T) : a.at(r, l);
            T x = load<T>(UB, at, name, line.at, origin), y = second.scalar;
            if (!second.is_scalar) {
                at = lanes.counted ? second.operand.address + i * sizeof(T)
                                   : second.operand.at(r, l);
                y = load<T>(UB, at, name, line.at, origin);
            }
            store_bit(to, i, compares(mode, widen(x), widen(y)), origin);
        }
    });
}

template <class T, class U>
void select(Line line, Lanes lanes, const AscendC::LocalTensor<T>& dst,
            const AscendC::LocalTensor<U>& bits, const AscendC::LocalTensor<T>& src,
            Second<T> second, AscendC::SELMODE mode, const AscendC::BinaryRepeatParams& p) {
    const char* name = "Select";
    require_type<T, half, float>(name, line.at);
    require_type<U, uint8_t, uint16_t, uint32_t, uint64_t>(name, line.at);
    if (second.is_scalar != (mode == AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE))
        stop(MISUSE, line.at, "Select: this mode takes a %s as its second choice",
             second.is_scalar ? "tensor" : "scalar");
    bool registers = mode == AscendC::SELMODE::VSEL_CMPMASK_SPR;
    if (!registers && allocated(UB) > UB_RESERVED_FROM)
        stop(MISUSE, line.at,
             "Select in this mode works in the last 8 KB of UB (from byte %llu), but buffers take "
             "%llu bytes",
             static_cast<unsigned long long>(UB_RESERVED_FROM),
             static_cast<unsigned long long>(allocated(UB)));
    if (lanes.nothing()) return;
    constexpr int width = lanes_per_repeat<T>();
    Operand d = operand(dst, "the destination", name, line.at, p.dstBlkStride, p.dstRepStride);
    Operand a = operand(src, "source 0", name, line.at, p.src0BlkStride, p.src0RepStride);
    uint64_t mask = operand(bits, "the mask", name, line.at).address;
    uint64_t total = lanes.counted ? lanes.count : uint64_t(lanes.repeats) * width;
    check_overlap(name, line.at, d, a, lanes, width, false);
    if (!second.is_scalar) check_overlap(name, line.at, d, second.operand, lanes, width, false);
    Issue op(name, V, line);
    op.read(UB, mask, ((registers && total > uint64_t(width) ? width : total) + 7) / 8);
    touch_lanes(op, a, lanes, width, false);
    if (!second.is_scalar) touch_lanes(op, second.operand, lanes, width, false);
    touch_lanes(op, d, lanes, width, true);
    op.commit([=] {
        for (uint64_t i = 0; i < total; ++i) {
            int r = static_cast<int>(i / width), l = static_cast<int>(i % width);
            if (!lanes.counted && !lanes.active(l)) continue;
            auto place = [&](const Operand& o) {
                return lanes.counted ? o.address + i * sizeof(T) : o.at(r, l);
            };
            Origin origin = 0;
            T value = second.scalar;
            if (load_bit(mask, registers ? l : i, name, line.at, origin))
                value = load<T>(UB, place(a), name, line.at, origin);
            else if (!second.is_scalar)
                value = load<T>(UB, place(second.operand), name, line.at, origin);
            store<T>(UB, place(d), value, origin);
        }
    });
}

template <class T>
Second<T> second_tensor(const AscendC::LocalTensor<T>& t, const char* name, int line, int block = 1,
                        int repeat = 8) {
    return Second<T>{false, T(), operand(t, "source 1", name, line, block, repeat)};
}
template <class T>
Second<T> second_scalar(T value) {
    return Second<T>{true, value, Operand{}};
}

}  // namespace emu

namespace AscendC {

template <class T, class U>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
             CMPMODE cmpMode, uint32_t count, EMU_LINE) {
    emu::compare("Compare", line, emu::Lanes::of_count(count, "Compare", line.at), dst, src0,
                 emu::second_tensor(src1, "Compare", line.at), cmpMode, 1, 8);
}
template <class T, class U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
             CMPMODE cmpMode, uint64_t mask, int64_t repeatTime, const BinaryRepeatParams& p,
             EMU_LINE) {
    emu::compare(
        "Compare", line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), "Compare", line.at),
        dst, src0, emu::second_tensor(src1, "Compare", line.at, p.src1BlkStride, p.src1RepStride),
        cmpMode, p.src0BlkStride, p.src0RepStride);
}

#define EMU_COMPARE_SCALAR(NAME)                                                                 \
    template <class T, class U>                                                                  \
    void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar,         \
              CMPMODE cmpMode, uint32_t count, EMU_LINE) {                                       \
        emu::compare(#NAME, line, emu::Lanes::of_count(count, #NAME, line.at), dst, src0,        \
                     emu::second_scalar(src1Scalar), cmpMode, 1, 8);                             \
    }                                                                                            \
    template <class T, class U, bool isSetMask = true>                                           \
    void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar,         \
              CMPMODE cmpMode, uint64_t mask, int64_t repeatTime, const UnaryRepeatParams& p,    \
              EMU_LINE) {                                                                        \
        emu::compare(                                                                            \
            #NAME, line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), #NAME, line.at), \
            dst, src0, emu::second_scalar(src1Scalar), cmpMode, p.srcBlkStride, p.srcRepStride); \
    }
EMU_COMPARE_SCALAR(CompareScalar)
EMU_COMPARE_SCALAR(Compares)

template <class T, class U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE selMode, uint32_t count, EMU_LINE) {
    emu::select(line, emu::Lanes::of_count(count, "Select", line.at), dst, selMask, src0,
                emu::second_tensor(src1, "Select", line.at), selMode, {});
}
template <class T, class U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            T src1, SELMODE selMode, uint32_t count, EMU_LINE) {
    emu::select(line, emu::Lanes::of_count(count, "Select", line.at), dst, selMask, src0,
                emu::second_scalar(src1), selMode, {});
}
template <class T, class U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE selMode, uint64_t mask, int64_t repeatTime,
            const BinaryRepeatParams& p, EMU_LINE) {
    emu::require_mask(isSetMask, "Select", line.at);
    emu::select(line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), "Select", line.at),
                dst, selMask, src0,
                emu::second_tensor(src1, "Select", line.at, p.src1BlkStride, p.src1RepStride),
                selMode, p);
}
template <class T, class U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            T src1, SELMODE selMode, uint64_t mask, int64_t repeatTime, const BinaryRepeatParams& p,
            EMU_LINE) {
    emu::require_mask(isSetMask, "Select", line.at);
    emu::select(line, emu::Lanes::of_mask(mask, repeatTime, 256 / sizeof(T), "Select", line.at),
                dst, selMask, src0, emu::second_scalar(src1), selMode, p);
}

}  // namespace AscendC
