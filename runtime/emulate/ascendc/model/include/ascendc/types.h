// Number types, qualifiers and enumerations of the dialect.
#pragma once

#include <math.h>

#include <initializer_list>

#define EMU_BFLOAT_BECOMES_FLOAT explicit  // only where a text says so
#include "cores/numbers.h"

#include "core.h"

#define __global__
#define __aicore__
#define __vector__
#define __cube__
#define __mix__(cube, vec)
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __ASCENDC_MODEL__ 1
#define __NPU_ARCH__ 2201
#define __DAV_C220__ 1
#ifndef __force_inline__
#define __force_inline__ inline
#endif

using GM_ADDR = uint8_t*;
#define KERNEL_TASK_TYPE_DEFAULT(type) ::emu::kernel_type(::AscendC::type, ::emu::Line::here())
#define ASCEND_IS_AIC (::emu::launch().side == ::emu::CUBE_SIDE)
#define ASCEND_IS_AIV (::emu::launch().side == ::emu::VECTOR_SIDE)

using float16_t = half;

namespace emu {

void kernel_type(int type, Line line);

// Rounds to a format of `mantissa` stored bits and the smallest normal exponent `lowest`.
enum Rounding : uint8_t { TO_EVEN, DOWN, UP, AWAY, TO_ZERO, TO_ODD };

inline double round_integral(double x, Rounding mode) {
    double low = floor(x), rest = x - low;
    if (rest == 0) return x;
    switch (mode) {
        case DOWN:
            return low;
        case UP:
            return low + 1;
        case TO_ZERO:
            return x < 0 ? low + 1 : low;
        case AWAY:
            return rest == 0.5 ? (x < 0 ? low : low + 1) : (rest < 0.5 ? low : low + 1);
        case TO_ODD:
            return fmod(low, 2) != 0 ? low : low + 1;
        default:
            return rest < 0.5 || (rest == 0.5 && fmod(low, 2) == 0) ? low : low + 1;
    }
}

inline double round_to(double x, int mantissa, int lowest, Rounding mode) {
    if (x == 0 || x != x || x - x != 0) return x;
    int exponent;
    frexp(x, &exponent);
    int unit = (exponent - 1 < lowest ? lowest : exponent - 1) - mantissa;
    double y = ldexp(round_integral(ldexp(x, -unit), mode), unit);
    return y == 0 ? copysign(0.0, x) : y;
}

template <class T>
struct TypeName;
#define EMU_TYPE_NAME(type)                        \
    template <>                                    \
    struct TypeName<type> {                        \
        static constexpr const char* text = #type; \
    };
EMU_TYPE_NAME(half)
EMU_TYPE_NAME(bfloat16_t)
EMU_TYPE_NAME(float)
EMU_TYPE_NAME(double)
EMU_TYPE_NAME(bool)
EMU_TYPE_NAME(int8_t)
EMU_TYPE_NAME(uint8_t)
EMU_TYPE_NAME(int16_t)
EMU_TYPE_NAME(uint16_t)
EMU_TYPE_NAME(int32_t)
EMU_TYPE_NAME(uint32_t)
EMU_TYPE_NAME(int64_t)
EMU_TYPE_NAME(uint64_t)
#undef EMU_TYPE_NAME

// Has a `type` where the two are different types.
template <class A, class B>
struct Unlike {
    using type = int;
};
template <class A>
struct Unlike<A, A> {};

// Whether a vector instruction exists for the element type; the message names the types that it
// takes.
template <class T, class... Allowed>
void require_type(const char* name, int line) {
    if constexpr (!one_of<T, Allowed...>()) {
        char list[128] = "";
        const char* names[] = {TypeName<Allowed>::text...};
        for (const char* one : names) {
            if (list[0]) strcat(list, ", ");
            strcat(list, one);
        }
        stop(MISUSE, line, "%s does not take %s on this core, only %s", name, TypeName<T>::text,
             list);
    }
}

}  // namespace emu

namespace AscendC {

enum class TPosition : uint8_t {
    GM,
    A1,
    A2,
    B1,
    B2,
    C1,
    C2,
    CO1,
    CO2,
    VECIN,
    VECOUT,
    VECCALC,
    LCM = VECCALC,
    SPM,
    SHM,
    TSCM,
    C2PIPE2GM,
    C2PIPE2LOCAL,
    MAX
};
using QuePosition = TPosition;

enum KernelType {
    KERNEL_TYPE_AIV_ONLY,
    KERNEL_TYPE_AIC_ONLY,
    KERNEL_TYPE_MIX_AIV_1_0,
    KERNEL_TYPE_MIX_AIC_1_0,
    KERNEL_TYPE_MIX_AIC_1_1,
    KERNEL_TYPE_MIX_AIC_1_2
};

enum class RoundMode {
    CAST_NONE,
    CAST_RINT,
    CAST_FLOOR,
    CAST_CEIL,
    CAST_ROUND,
    CAST_TRUNC,
    CAST_ODD
};
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };

constexpr int32_t ONE_BLK_SIZE = 32;

struct int4b_t;  // named in texts that choose a type; nothing here computes with it
template <class A, class B>
using IsSameType = emu::Same<A, B>;

struct BinaryRepeatParams {
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1;
    uint8_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
    BinaryRepeatParams() {}
    BinaryRepeatParams(uint8_t dst_block, uint8_t src0_block, uint8_t src1_block,
                       uint8_t dst_repeat, uint8_t src0_repeat, uint8_t src1_repeat)
        : dstBlkStride(dst_block),
          src0BlkStride(src0_block),
          src1BlkStride(src1_block),
          dstRepStride(dst_repeat),
          src0RepStride(src0_repeat),
          src1RepStride(src1_repeat) {}
};

struct UnaryRepeatParams {
    uint16_t dstBlkStride = 1, srcBlkStride = 1;
    uint8_t dstRepStride = 8, srcRepStride = 8;
    UnaryRepeatParams() {}
    UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat,
                      uint8_t src_repeat)
        : dstBlkStride(dst_block),
          srcBlkStride(src_block),
          dstRepStride(dst_repeat),
          srcRepStride(src_repeat) {}
};

struct BrcbRepeatParams {
    uint16_t dstRepStride = 8, dstBlkStride = 1;
    BrcbRepeatParams() {}
    BrcbRepeatParams(uint16_t dst_block, uint16_t dst_repeat)
        : dstRepStride(dst_repeat), dstBlkStride(dst_block) {}
};

struct DataCopyParams {
    uint16_t blockCount = 1, blockLen = 0;
    union {
        uint16_t srcGap = 0;
        uint16_t srcStride;
    };
    union {
        uint16_t dstGap = 0;
        uint16_t dstStride;
    };
    DataCopyParams() {}
    DataCopyParams(uint16_t count, uint16_t length, uint16_t src_gap, uint16_t dst_gap)
        : blockCount(count), blockLen(length), srcGap(src_gap), dstGap(dst_gap) {}
};

struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
    DataCopyExtParams() {}
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t src_stride, uint32_t dst_stride,
                      uint32_t reserved)
        : blockCount(count),
          blockLen(length),
          srcStride(src_stride),
          dstStride(dst_stride),
          rsv(reserved) {}
};

template <class T>
struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue = T(0);
    DataCopyPadExtParams() {}
    DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

struct DataCopyPadParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    uint64_t paddingValue = 0;
    DataCopyPadParams() {}
    DataCopyPadParams(bool pad, uint8_t left, uint8_t right, uint64_t value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

inline float ToFloat(const bfloat16_t& x) { return static_cast<float>(x); }
inline bfloat16_t ToBfloat16(const float& x) { return bfloat16_t(x); }

// In a mixed kernel a block is a cube core and its vector cores; vector cores count on their own.
inline int64_t GetSubBlockNum() {
    return emu::launch().cube && emu::launch().vector_cores ? emu::launch().vector_cores : 1;
}
inline int64_t GetSubBlockIdx() {
    return emu::launch().side == emu::VECTOR_SIDE && emu::launch().cube ? emu::running - 1 : 0;
}
inline int64_t GetTaskRation() {
    return emu::launch().side == emu::VECTOR_SIDE ? GetSubBlockNum() : 1;
}
inline int64_t GetBlockIdx() { return emu::launch().block * GetTaskRation() + GetSubBlockIdx(); }
inline int64_t GetBlockNum() { return emu::launch().blocks; }

}  // namespace AscendC

#define block_idx (::AscendC::GetBlockIdx())
#define block_num (::AscendC::GetBlockNum())
