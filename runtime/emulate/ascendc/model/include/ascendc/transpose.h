// Instructions that exchange rows and columns: 16 blocks of 32 bytes a repeat, each anywhere in UB.
#pragma once

#include "vector.h"

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

// A narrowing number is kept as given, so that the call can say what the hardware would not see.
struct TransDataTo5HDParams {
    bool dstHighHalf = false, srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0, srcRepStride = 0;
    constexpr TransDataTo5HDParams() = default;
    constexpr TransDataTo5HDParams(bool dst_high, bool src_high, int64_t repeats,
                                   int64_t dst_repeat, int64_t src_repeat)
        : dstHighHalf(dst_high),
          srcHighHalf(src_high),
          repeatTimes(static_cast<uint8_t>(repeats)),
          dstRepStride(static_cast<uint16_t>(dst_repeat)),
          srcRepStride(static_cast<uint16_t>(src_repeat)),
          cut_(repeats != repeatTimes || dst_repeat != dstRepStride || src_repeat != srcRepStride) {
    }
    constexpr bool cut() const { return cut_; }

   private:
    bool cut_ = false;
};

}  // namespace AscendC

namespace emu {

struct Blocks {
    uint64_t at[16];
    uint64_t stride;  // bytes from one repeat to the next
};

// A repeat that is the only one starts a stride behind its list.
inline Blocks blocks(const uint64_t list[16], uint64_t stride, int repeats, const char* role,
                     int line) {
    Blocks found{{}, stride * BLOCK};
    for (int i = 0; i < 16; ++i) {
        if (list[i] % BLOCK)
            stop(MISUSE, line, "TransDataTo5HD: %s %d starts at byte %llu, no multiple of 32", role,
                 i, static_cast<unsigned long long>(list[i]));
        found.at[i] = list[i] + (repeats == 1 ? found.stride : 0);
    }
    return found;
}

// Results on results, or on a source of this or another repeat, depend on an order that nothing
// states.
void check_apart(const Blocks& to, const Blocks& from, int repeats, int line);

template <class T>
void transposed(Line line, const uint64_t dst[16], const uint64_t src[16],
                const AscendC::TransDataTo5HDParams& p) {
    const char* name = "TransDataTo5HD";
    require_type<T, int8_t, uint8_t, int16_t, uint16_t, half, int32_t, uint32_t, float>(name,
                                                                                        line.at);
    if (p.cut())
        stop(MISUSE, line.at,
             "%s: more than 255 repeats, or a stride of more than 65535 blocks, is cut off", name);
    int repeats = p.repeatTimes;
    if (!repeats) return;
    Blocks to = blocks(dst, p.dstRepStride, repeats, "result", line.at),
           from = blocks(src, p.srcRepStride, repeats, "source", line.at);
    constexpr uint64_t size = sizeof(T);
    // Bytes of a block that are read or written: half of it where elements are bytes.
    constexpr uint64_t part = size == 1 ? 16 : 32;
    uint64_t read_from = size == 1 && p.srcHighHalf ? 16 : 0;
    uint64_t write_from = size == 1 && p.dstHighHalf ? 16 : 0;
    check_apart(to, from, repeats, line.at);
    Issue op(name, V, line);
    for (int r = 0; r < repeats; ++r)
        for (int i = 0; i < 16; ++i) {
            op.read(UB, from.at[i] + r * from.stride + read_from, part);
            op.write(UB, to.at[i] + r * to.stride + write_from, part);
        }
    op.commit([=] {
        constexpr int lanes = static_cast<int>(part / size);  // of a source
        constexpr int blocks_of_16 = 16 / lanes;  // results that one lane of 16 sources makes
        for (int r = 0; r < repeats; ++r)
            for (int lane = 0; lane < lanes; ++lane)
                for (int i = 0; i < 16; ++i) {
                    Origin origin = 0;
                    T value = load<T>(UB, from.at[i] + r * from.stride + read_from + lane * size,
                                      name, line.at, origin);
                    int result = lane * blocks_of_16 + i / lanes;
                    store<T>(UB, to.at[result] + r * to.stride + write_from + i % lanes * size,
                             value, origin);
                }
    });
}

}  // namespace emu

namespace AscendC {

template <class T>
void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE],
                    uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& nchwconvParams, EMU_LINE) {
    emu::transposed<T>(line, dstList, srcList, nchwconvParams);
}
template <class T>
void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& nchwconvParams, EMU_LINE) {
    uint64_t dst[16], src[16];
    for (int i = 0; i < 16; ++i) {
        emu::operand(dstList[i], "a result", "TransDataTo5HD", line.at);
        emu::operand(srcList[i], "a source", "TransDataTo5HD", line.at);
        dst[i] = dstList[i].address, src[i] = srcList[i].address;
    }
    emu::transposed<T>(line, dst, src, nchwconvParams);
}

// 16 x 16 elements of 16 bits, in place or not.
template <class T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, EMU_LINE) {
    const char* name = "Transpose";
    emu::require_type<T, int16_t, uint16_t, half>(name, line.at);
    uint64_t to = emu::operand(dst, "the destination", name, line.at).address;
    uint64_t from = emu::operand(src, "the source", name, line.at).address;
    if (to != from && to < from + 512 && from < to + 512)
        emu::stop(emu::MISUSE, line.at,
                  "Transpose: the two overlap in part; they must be the same or apart");
    if constexpr (sizeof(T) == 2) {
        emu::Issue op(name, emu::V, line);
        op.read(emu::UB, from, 512);
        op.write(emu::UB, to, 512);
        op.commit([=] {
            T values[256];
            emu::Origin origins[256];
            for (int i = 0; i < 256; ++i) {
                origins[i] = 0;
                values[i] = emu::load<T>(emu::UB, from + 2 * i, name, line.at, origins[i]);
            }
            for (int i = 0; i < 256; ++i)
                emu::store<T>(emu::UB, to + 2 * i, values[i % 16 * 16 + i / 16],
                              origins[i % 16 * 16 + i / 16]);
        });
    }
}

// [N, C, H, W] to [N, H, W, C] and back, through a buffer of the text's.
enum class TransposeType : uint8_t {
    TRANSPOSE_TYPE_NONE,
    TRANSPOSE_NZ2ND_0213,
    TRANSPOSE_NZ2NZ_0213,
    TRANSPOSE_NZ2NZ_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITHOUT_N,
    TRANSPOSE_NZ2NZ_012_WITHOUT_N,
    TRANSPOSE_ND2ND_ONLY,
    TRANSPOSE_ND_UB_GM,
    TRANSPOSE_GRAD_ND_UB_GM,
    TRANSPOSE_ND2ND_B16,
    TRANSPOSE_NCHW2NHWC,
    TRANSPOSE_NHWC2NCHW
};

struct TransposeParamsExt {
    uint16_t nSize = 0, cSize = 0, hSize = 0, wSize = 0;
    TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;
    TransposeParamsExt() {}
    TransposeParamsExt(uint16_t n, uint16_t c, uint16_t h, uint16_t w, TransposeType type)
        : nSize(n), cSize(c), hSize(h), wSize(w), transposeType(type) {}
};

template <class T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
               const LocalTensor<uint8_t>& sharedTmpBuffer, const TransposeParamsExt& p, EMU_LINE) {
    const char* name = "Transpose";
    bool last = p.transposeType == TransposeType::TRANSPOSE_NCHW2NHWC;
    if (!last && p.transposeType != TransposeType::TRANSPOSE_NHWC2NCHW)
        emu::stop(emu::UNSUPPORTED, line.at,
                  "Transpose: of the forms with parameters, NCHW2NHWC and NHWC2NCHW");
    emu::require_type<T, int8_t, uint8_t, int16_t, uint16_t, half, int32_t, uint32_t, float>(
        name, line.at);
    uint64_t plane = uint64_t{p.hSize} * p.wSize, images = p.nSize, channels = p.cSize;
    if (plane > 4095 || channels > 4095)
        emu::stop(emu::MISUSE, line.at, "Transpose: cSize and hSize * wSize are at most 4095");
    if (plane * sizeof(T) % emu::BLOCK)
        emu::stop(emu::MISUSE, line.at, "Transpose: a plane of %llu bytes is no multiple of 32",
                  static_cast<unsigned long long>(plane * sizeof(T)));
    uint64_t square = (sizeof(T) == 1 ? 32 : 16) * uint64_t{32};
    uint64_t needed = (last ? channels + 2 : channels * 2 + 1) * square;
    if (sharedTmpBuffer.bytes < needed)
        emu::stop(emu::MISUSE, line.at, "Transpose: a buffer of %llu bytes, which needs %llu",
                  static_cast<unsigned long long>(sharedTmpBuffer.bytes),
                  static_cast<unsigned long long>(needed));
    uint64_t count = images * channels * plane, bytes = count * sizeof(T);
    if (!count) return;
    uint64_t to = emu::operand(dst, "the destination", name, line.at).address;
    uint64_t from = emu::operand(src, "the source", name, line.at).address;
    uint64_t work = emu::operand(sharedTmpBuffer, "the buffer", name, line.at).address;
    if (to < from + bytes && from < to + bytes)
        emu::stop(emu::MISUSE, line.at, "Transpose: the two overlap");
    emu::Issue op(name, emu::V, line);
    op.read(emu::UB, from, bytes);
    op.write(emu::UB, work, needed);
    op.write(emu::UB, to, bytes);
    op.commit([=] {
        for (uint64_t n = 0; n < images; ++n)
            for (uint64_t c = 0; c < channels; ++c)
                for (uint64_t x = 0; x < plane; ++x) {
                    uint64_t planes = (n * channels + c) * plane + x;
                    uint64_t pixels = (n * plane + x) * channels + c;
                    emu::Origin origin = 0;
                    T value = emu::load<T>(emu::UB, from + (last ? planes : pixels) * sizeof(T),
                                           name, line.at, origin);
                    emu::store<T>(emu::UB, to + (last ? pixels : planes) * sizeof(T), value,
                                  origin);
                }
    });
}

}  // namespace AscendC
