// Fixpipe: sums of the cube core from L0C to global memory, converted and cut off below 0 on the way.
#pragma once

#include "matrix.h"

enum QuantMode_t {
    NoQuant,
    F322F16,
    F322BF16,
    DEQF16,
    VDEQF16,
    QF322B8_PRE,
    VQF322B8_PRE,
    REQ8,
    VREQ8
};

namespace AscendC {

enum class CO2Layout : uint8_t { NZ, ROW_MAJOR, COLUMN_MAJOR };
struct FixpipeConfig {
    CO2Layout format;
    constexpr FixpipeConfig(CO2Layout format) : format(format) {}
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

struct FixpipeParamsV220 {
    uint16_t nSize = 0, mSize = 0, srcStride = 0;
    uint32_t dstStride = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
    FixpipeParamsV220() {}
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t src_stride, uint32_t dst_stride, bool relu)
        : nSize(n), mSize(m), srcStride(src_stride), dstStride(dst_stride), reluEn(relu) {}
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t src_stride, uint32_t dst_stride, bool relu,
                      QuantMode_t mode, int64_t scalar, uint16_t nd, uint16_t src_nd_stride,
                      uint16_t dst_nd_stride, uint8_t flag)
        : nSize(n),
          mSize(m),
          srcStride(src_stride),
          dstStride(dst_stride),
          quantPre(mode),
          deqScalar(scalar),
          ndNum(nd),
          srcNdStride(src_nd_stride),
          dstNdStride(dst_nd_stride),
          reluEn(relu),
          unitFlag(flag) {}
};

}  // namespace AscendC

namespace emu {

template <class T, class U>
void check_conversion(QuantMode_t mode, int line) {
    QuantMode_t wanted = NoQuant;
    if (Same<U, float>::value && Same<T, half>::value) wanted = F322F16;
    if (Same<U, float>::value && Same<T, bfloat16_t>::value) wanted = F322BF16;
    if ((Same<T, U>::value || wanted != NoQuant) && mode == wanted) return;
    static const char* const names[] = {"NoQuant", "F322F16", "F322BF16"};
    if (Same<T, U>::value || wanted != NoQuant)
        stop(MISUSE, line, "Fixpipe from %s to %s takes quantPre %s", TypeName<U>::text,
             TypeName<T>::text, names[wanted]);
    stop(UNSUPPORTED, line, "Fixpipe from %s to %s", TypeName<U>::text, TypeName<T>::text);
}

// Where the rows of one matrix lie: `row` elements at a time (NZ: 16), rows `pitch` bytes apart.
template <class T, class U>
void fix(uint64_t to, uint64_t from, uint64_t count, bool relu, Atomic atomic, int line) {
    std::vector<T> out(count);
    for (uint64_t i = 0; i < count; ++i) {
        Origin origin = 0;
        U value = load<U>(L0C, from + i * sizeof(U), "Fixpipe", line, origin);
        if (origin) uses_unspecified(origin, L0C, from + i * sizeof(U), "Fixpipe", line);
        out[i] = T(relu && !(value > U(0)) ? U(0) : value);
    }
    if (atomic == PLAIN)
        memcpy(reinterpret_cast<void*>(to), out.data(), count * sizeof(T));
    else
        merge<T>(to, reinterpret_cast<const uint8_t*>(out.data()), count * sizeof(T), atomic);
}

}  // namespace emu

namespace AscendC {

template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p,
             emu::Line line = emu::Line::here()) {
    using namespace emu;
    constexpr bool nd = config.format == CO2Layout::ROW_MAJOR;
    require_space(src, {L0C}, "Fixpipe", "the source", line.at);
    check_start(src, 64, "Fixpipe", "the source", line.at);
    check_range(p.nSize, 0, 4095, "Fixpipe", "nSize", line.at);
    check_range(p.mSize, 0, nd ? 8192 : 65535, "Fixpipe", "mSize", line.at);
    if (p.unitFlag || p.isChannelSplit)
        stop(UNSUPPORTED, line.at, "Fixpipe with unitFlag or isChannelSplit");
    check_conversion<T, U>(p.quantPre, line.at);
    if (!p.nSize || !p.mSize || !p.ndNum) return;
    if (!nd && p.nSize % 16)
        stop(MISUSE, line.at, "Fixpipe to NZ takes an nSize of whole fractals, not %u", p.nSize);
    if (!p.dstStride) stop(MISUSE, line.at, "Fixpipe: dstStride is 0");
    uint64_t blocks = ceil_div(p.nSize, 16), rows = p.mSize, columns = p.nSize;
    if (blocks > 1 && p.srcStride < rows)
        stop(MISUSE, line.at, "Fixpipe: srcStride is %u, less than the %u rows", p.srcStride,
             p.mSize);
    uint64_t matrices = nd ? p.ndNum : 1, src_step = uint64_t{p.srcNdStride} * 1024,
             dst_step = uint64_t{p.dstNdStride} * sizeof(T), from = src.address,
             to = reinterpret_cast<uint64_t>(dst.base), stride = uint64_t{p.srcStride} * 64,
             pitch = nd ? p.dstStride * sizeof(T) : uint64_t{p.dstStride} * BLOCK;
    if (nd && rows > 1 && pitch < columns * sizeof(T))
        stop(MISUSE, line.at, "Fixpipe: rows of %u elements overlap, %u apart", p.nSize,
             p.dstStride);
    uint64_t last = nd ? (rows - 1) * pitch + columns * sizeof(T)
                       : (blocks - 1) * pitch + rows * 16 * sizeof(T);
    check_bound(dst, (matrices - 1) * dst_step + last, "Fixpipe", line.at);
    Atomic atomic = launch().atomic;
    Issue op("Fixpipe", FIX, line);
    op.atomic(atomic);
    for (uint64_t i = 0; i < matrices; ++i) {
        for (uint64_t b = 0; b < blocks; ++b)
            op.read(L0C, from + i * src_step + b * stride, rows * 64);
        Rows there{to + i * dst_step, pitch};
        nd ? touch_rows(op, GM, there, rows, columns * sizeof(T), true)
           : touch_rows(op, GM, there, blocks, rows * 16 * sizeof(T), true);
    }
    bool relu = p.reluEn;
    op.commit([=] {
        for (uint64_t i = 0; i < matrices; ++i)
            for (uint64_t r = 0; r < rows; ++r)
                for (uint64_t b = 0; b < blocks; ++b) {
                    uint64_t left = columns - b * 16;
                    uint64_t at =
                        nd ? r * pitch + b * 16 * sizeof(T) : b * pitch + r * 16 * sizeof(T);
                    emu::fix<T, U>(to + i * dst_step + at,
                                   from + i * src_step + b * stride + r * 64, left < 16 ? left : 16,
                                   relu, atomic, line.at);
                }
    });
}

}  // namespace AscendC
