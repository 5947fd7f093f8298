// The cube core: ND2NZ transfers to L1, loads of fractals to L0A and L0B, bias table, Mmad.
//
// A fractal is 512 bytes: 16 rows of 32 bytes. C0 is how many elements 32 bytes hold.
// L1, "NZ" of R x C:    element (r, c) at ((c / C0) * rows + r) * C0 + c % C0
// L0A, "ZZ" of M x K:   fractal (m / 16) * (K / C0) + k / C0, rows of m in it
// L0B, "ZN" of K x N:   fractal (k / C0) * (N / 16) + n / 16, rows of n in it
// L0C, "NZ" of M x N:   element (m, n) at ((n / 16) * rows + m) * 16 + n % 16
#pragma once

#include <vector>

#include "copy.h"

namespace AscendC {

struct Nd2NzParams {
    uint16_t ndNum = 0, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcDValue = 0,
             dstNzC0Stride = 0, dstNzNStride = 0, dstNzMatrixStride = 0;
    Nd2NzParams() {}
    Nd2NzParams(uint16_t nd_num, uint16_t n, uint16_t d, uint16_t src_matrix_stride, uint16_t src_d,
                uint16_t dst_c0_stride, uint16_t dst_n_stride, uint16_t dst_matrix_stride)
        : ndNum(nd_num),
          nValue(n),
          dValue(d),
          srcNdMatrixStride(src_matrix_stride),
          srcDValue(src_d),
          dstNzC0Stride(dst_c0_stride),
          dstNzNStride(dst_n_stride),
          dstNzMatrixStride(dst_matrix_stride) {}
};

struct LoadData2DParams {
    uint16_t startIndex = 0, dstGap = 0, srcStride = 0;
    bool ifTranspose = false;
    uint8_t repeatTimes = 0, sid = 0, addrMode = 0;
    LoadData2DParams() {}
    LoadData2DParams(uint16_t start, uint8_t repeat, uint16_t src_stride, uint8_t id,
                     uint16_t dst_gap, bool transpose, uint8_t mode)
        : startIndex(start),
          dstGap(dst_gap),
          srcStride(src_stride),
          ifTranspose(transpose),
          repeatTimes(repeat),
          sid(id),
          addrMode(mode) {}
};
using LoadData2dParams = LoadData2DParams;

struct LoadData2dTransposeParams {
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0, dstGap = 0, dstFracGap = 0;
    uint8_t addrMode = 0;
    LoadData2dTransposeParams() {}
    LoadData2dTransposeParams(uint16_t start, uint8_t repeat, uint16_t src_stride, uint16_t dst_gap,
                              uint16_t dst_fractal_gap, uint8_t mode = 0)
        : startIndex(start),
          repeatTimes(repeat),
          srcStride(src_stride),
          dstGap(dst_gap),
          dstFracGap(dst_fractal_gap),
          addrMode(mode) {}
};

template <class T>
struct InitConstValueParams {
    uint16_t repeatTimes = 0, blockNum = 0, dstGap = 0;
    T initValue = T(0);
    InitConstValueParams() {}
    InitConstValueParams(uint16_t repeat, uint16_t blocks, uint16_t gap, T value)
        : repeatTimes(repeat), blockNum(blocks), dstGap(gap), initValue(value) {}
    InitConstValueParams(uint16_t repeat, T value)
        : repeatTimes(repeat), blockNum(1), initValue(value) {}
};

struct MmadParams {
    uint16_t m = 0, n = 0, k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false, enWinogradA = false, enWinogradB = false;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false, cmatrixSource = false, cmatrixInitVal = true;
    MmadParams() {}
    MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, uint8_t flag, bool from_bias,
               bool from_zero)
        : m(rows),
          n(columns),
          k(depth),
          unitFlag(flag),
          cmatrixSource(from_bias),
          cmatrixInitVal(from_zero) {}
};

}  // namespace AscendC

namespace emu {

constexpr uint64_t FRACTAL = 512;

inline uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

inline void check_range(uint64_t value, uint64_t low, uint64_t high, const char* name,
                        const char* field, int line) {
    if (value < low || value > high)
        stop(MISUSE, line, "%s: %s is %llu, possible are %llu to %llu", name, field,
             static_cast<unsigned long long>(value), static_cast<unsigned long long>(low),
             static_cast<unsigned long long>(high));
}

template <class T>
void require_space(const AscendC::LocalTensor<T>& tensor, std::initializer_list<Space> allowed,
                   const char* name, const char* operand, int line) {
    for (Space space : allowed)
        if (tensor.space == space) return;
    stop(MISUSE, line, "%s: %s lies in %s, not in %s%s%s", name, operand, space_name(tensor.space),
         space_name(*allowed.begin()), allowed.size() > 1 ? " or " : "",
         allowed.size() > 1 ? space_name(*(allowed.begin() + 1)) : "");
}

template <class T>
void move_element(Space to_space, uint64_t to, Space from_space, uint64_t from, const char* name,
                  int line) {
    Origin origin = 0;
    T value = load<T>(from_space, from, name, line, origin);
    store<T>(to_space, to, value, origin);
}

// One square of `side` rows and columns, its fractals one after the other, transposed: the rows of
// the result are columns of the source. `to(f)` is where fractal f of the result starts.
template <class T, class To>
void transpose_square(Space to_space, To to, Space from_space, uint64_t from, const char* name,
                      int line) {
    constexpr uint64_t c0 = BLOCK / sizeof(T), side = c0 > 16 ? c0 : 16;
    auto place = [](uint64_t row, uint64_t column) {
        // 8-bit: fractals one below the other; 32-bit: side by side; 16-bit: there is only one.
        uint64_t fractal = row / 16 + column / c0;
        return fractal * FRACTAL + (row % 16) * BLOCK + (column % c0) * sizeof(T);
    };
    for (uint64_t row = 0; row < side; ++row)
        for (uint64_t column = 0; column < side; ++column) {
            uint64_t at = place(row, column), fractal = at / FRACTAL;
            move_element<T>(to_space, to(fractal) + at % FRACTAL, from_space,
                            from + place(column, row), name, line);
        }
}

template <class T>
void check_l0(const AscendC::LocalTensor<T>& dst, const char* name, int line) {
    require_space(dst, {L0A, L0B}, name, "the destination", line);
    check_start(dst, FRACTAL, name, "the destination", line);
}

// What the operands of Mmad are: types, places, starts.
template <class C, class A, class B>
void check_product(const AscendC::LocalTensor<C>& c, const AscendC::LocalTensor<A>& a,
                   const AscendC::LocalTensor<B>& b, int line) {
    constexpr bool possible =
        Same<A, B>::value && ((Same<C, float>::value && one_of<A, half, bfloat16_t, float>()) ||
                              (Same<C, int32_t>::value && Same<A, int8_t>::value));
    if (!possible)
        stop(MISUSE, line, "Mmad does not multiply %s and %s into %s on this core",
             TypeName<A>::text, TypeName<B>::text, TypeName<C>::text);
    require_space(c, {L0C}, "Mmad", "the result", line);
    require_space(a, {L0A}, "Mmad", "the left matrix", line);
    require_space(b, {L0B}, "Mmad", "the right matrix", line);
    check_start(c, 1024, "Mmad", "the result", line);
    check_start(a, FRACTAL, "Mmad", "the left matrix", line);
    check_start(b, FRACTAL, "Mmad", "the right matrix", line);
}

// Where Mmad finds its elements.
template <class A>
struct Operands {
    static constexpr uint64_t c0 = BLOCK / sizeof(A);
    uint64_t a, b, c, m, n, k;
    bool aligned;  // float: rows of fractals of A start at even ones

    uint64_t k_fractals() const { return ceil_div(k, c0); }
    uint64_t k_pitch() const {
        return aligned && sizeof(A) == 4 ? ceil_div(k, 16) * 2 : k_fractals();
    }
    uint64_t rows() const { return ceil_div(m, 16) * 16; }
    uint64_t a_at(uint64_t i, uint64_t j) const {
        if (m == 1) return a + j * sizeof(A);  // GEMV: the row lies there as it is
        return a + (i / 16 * k_pitch() + j / c0) * FRACTAL + i % 16 * BLOCK + j % c0 * sizeof(A);
    }
    uint64_t b_at(uint64_t i, uint64_t j) const {
        return b + (i / c0 * ceil_div(n, 16) + j / 16) * FRACTAL + j % 16 * BLOCK +
               i % c0 * sizeof(A);
    }
    uint64_t c_at(uint64_t i, uint64_t j) const {
        return c + ((j / 16 * rows() + i) * 16 + j % 16) * 4;
    }
    uint64_t a_bytes() const {
        if (m == 1) return k * sizeof(A);
        return ((ceil_div(m, 16) - 1) * k_pitch() + k_fractals()) * FRACTAL;
    }
    uint64_t b_bytes() const { return k_fractals() * ceil_div(n, 16) * FRACTAL; }
    uint64_t c_bytes() const { return rows() * ceil_div(n, 16) * 16 * 4; }
};

enum Start : uint8_t { FROM_ZERO, FROM_L0C, FROM_BIAS };

template <class C, class A>
void multiply(const Operands<A>& o, Start start, uint64_t bias, int line) {
    using W = typename Wide<A>::type;
    auto read = [line](Space space, uint64_t at, Origin& origin) {
        return static_cast<C>(W(widen(load<A>(space, at, "Mmad", line, origin))));
    };
    std::vector<C> a(o.m * o.k), b(o.n * o.k);
    std::vector<Origin> bad_row(o.m), bad_column(o.n);
    for (uint64_t i = 0; i < o.m; ++i)
        for (uint64_t j = 0; j < o.k; ++j) a[i * o.k + j] = read(L0A, o.a_at(i, j), bad_row[i]);
    for (uint64_t j = 0; j < o.n; ++j)
        for (uint64_t i = 0; i < o.k; ++i) b[j * o.k + i] = read(L0B, o.b_at(i, j), bad_column[j]);
    uint64_t columns = ceil_div(o.n, 16) * 16;
    Origin padding = 0;
    for (uint64_t i = 0; i < o.rows(); ++i)
        for (uint64_t j = 0; j < columns; ++j) {
            if (i >= o.m || j >= o.n) {  // lanes of the last fractals that mean nothing
                if (!padding) padding = padding_origin("Mmad", line);
                store<C>(L0C, o.c_at(i, j), C(0), padding);
                continue;
            }
            Origin origin = bad_row[i] ? bad_row[i] : bad_column[j];
            C sum = 0;
            if (start == FROM_L0C) sum = load<C>(L0C, o.c_at(i, j), "Mmad", line, origin);
            if (start == FROM_BIAS) sum = load<C>(BT, bias + j * 4, "Mmad", line, origin);
            const C *x = &a[i * o.k], *y = &b[j * o.k];
            for (uint64_t k = 0; k < o.k; ++k) sum += x[k] * y[k];
            store<C>(L0C, o.c_at(i, j), sum, origin);
        }
}

template <class C, class A>
void product(const AscendC::LocalTensor<C>& c, const AscendC::LocalTensor<A>& a,
             const AscendC::LocalTensor<A>& b, Start start, uint64_t bias,
             const AscendC::MmadParams& p, Line line) {
    check_range(p.m, 0, 4095, "Mmad", "m", line.at);
    check_range(p.n, 0, 4095, "Mmad", "n", line.at);
    check_range(p.k, 0, 4095, "Mmad", "k", line.at);
    if (p.unitFlag)
        stop(UNSUPPORTED, line.at, "Mmad with unitFlag: M and FIX share no fractals here");
    if (!p.m || !p.n || !p.k) return;
    Operands<A> o{a.address, b.address, c.address, p.m, p.n, p.k, p.kDirectionAlign};
    Issue op("Mmad", M, line);
    op.read(L0A, a.address, o.a_bytes());
    op.read(L0B, b.address, o.b_bytes());
    if (start == FROM_L0C) op.read(L0C, c.address, o.c_bytes());
    if (start == FROM_BIAS) op.read(BT, bias, uint64_t{p.n} * 4);
    op.write(L0C, c.address, o.c_bytes());
    // The hardware orders products on the same sums by itself only where they are large enough.
    if (p.m / 16 * (p.n / 16) < 10) op.small();
    op.commit([=] { multiply<C, A>(o, start, bias, line.at); });
}

}  // namespace emu

namespace AscendC {

// GM to L1, rows becoming fractals; what is missing of the last 32 bytes of a row arrives as zeros,
// what is missing of the last 16 rows does not arrive.
template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p,
              emu::Line line = emu::Line::here()) {
    using namespace emu;
    const char* name = "DataCopy (ND2NZ)";
    require_space(dst, {L1}, name, "the destination", line.at);
    check_start(dst, BLOCK, name, "the destination", line.at);
    check_range(p.ndNum, 0, 4095, name, "ndNum", line.at);
    check_range(p.nValue, 0, 16384, name, "nValue", line.at);
    if (!p.ndNum || !p.nValue || !p.dValue) return;
    check_range(p.srcDValue, 1, 65535, name, "srcDValue", line.at);
    check_range(p.dstNzC0Stride, 1, 16384, name, "dstNzC0Stride", line.at);
    check_range(p.dstNzNStride, 1, 16384, name, "dstNzNStride", line.at);
    check_range(p.dstNzMatrixStride, 0, 16384, name, "dstNzMatrixStride", line.at);
    constexpr uint64_t c0 = BLOCK / sizeof(T);
    uint64_t rows = p.nValue, columns = p.dValue, blocks = ceil_div(columns, c0),
             pitch = uint64_t{p.srcDValue} * sizeof(T), row = columns * sizeof(T);
    auto from = [=](uint64_t matrix, uint64_t r) {
        return reinterpret_cast<uint64_t>(src.base) + matrix * p.srcNdMatrixStride * sizeof(T) +
               r * pitch;
    };
    auto to = [=](uint64_t matrix, uint64_t r, uint64_t block) {
        return dst.address + matrix * p.dstNzMatrixStride * sizeof(T) +
               block * p.dstNzC0Stride * BLOCK + r * p.dstNzNStride * BLOCK;
    };
    uint64_t last = from(p.ndNum - 1, rows - 1) - reinterpret_cast<uint64_t>(src.base);
    check_bound(src, last + row, name, line.at);
    if (p.dstNzNStride == 1 && p.dstNzC0Stride < rows && blocks > 1)
        stop(MISUSE, line.at, "%s: %llu rows of 32 bytes overlap those that start %u later", name,
             static_cast<unsigned long long>(rows), p.dstNzC0Stride);
    Issue op(name, MTE2, line);
    for (uint64_t matrix = 0; matrix < p.ndNum; ++matrix) {
        touch_rows(op, GM, {from(matrix, 0), pitch}, rows, row, false);
        for (uint64_t b = 0; b < blocks; ++b)
            touch_rows(op, L1, {to(matrix, 0, b), p.dstNzNStride * BLOCK}, rows, BLOCK, true);
    }
    uint32_t matrices = p.ndNum;
    op.commit([=] {
        for (uint64_t matrix = 0; matrix < matrices; ++matrix)
            for (uint64_t r = 0; r < rows; ++r)
                for (uint64_t b = 0; b < blocks; ++b) {
                    uint64_t at = to(matrix, r, b), left = row - b * BLOCK;
                    uint64_t bytes = left < BLOCK ? left : BLOCK;
                    from_global(L1, at, from(matrix, r) + b * BLOCK, bytes);
                    for (uint64_t i = bytes; i < BLOCK; ++i) store<uint8_t>(L1, at + i, 0, 0);
                }
    });
}

// L1 to L0A or L0B: whole fractals, each transposed if asked for.
template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& p,
              emu::Line line = emu::Line::here()) {
    using namespace emu;
    const char* name = "LoadData";
    check_l0(dst, name, line.at);
    require_space(src, {L1}, name, "the source", line.at);
    check_start(src, BLOCK, name, "the source", line.at);
    if (p.addrMode) stop(UNSUPPORTED, line.at, "LoadData with addrMode 1");
    if (p.ifTranspose && sizeof(T) != 2)
        stop(MISUSE, line.at, "LoadData transposes 16-bit elements only, not %s",
             TypeName<T>::text);
    if (!p.repeatTimes) return;
    uint64_t from = src.address + p.startIndex * FRACTAL, step = p.srcStride * FRACTAL,
             gap = (uint64_t{p.dstGap} + 1) * FRACTAL;
    Issue op(name, MTE1, line);
    touch_rows(op, L1, {from, step}, p.repeatTimes, FRACTAL, false);
    touch_rows(op, dst.space, {dst.address, gap}, p.repeatTimes, FRACTAL, true);
    Space space = dst.space;
    uint64_t to = dst.address, repeats = p.repeatTimes;
    bool transpose = p.ifTranspose;
    op.commit([=] {
        for (uint64_t i = 0; i < repeats; ++i) {
            if constexpr (sizeof(T) == 2) {
                if (transpose) {
                    transpose_square<T>(
                        space, [=](uint64_t) { return to + i * gap; }, L1, from + i * step, name,
                        line.at);
                    continue;
                }
            }
            within(space, to + i * gap, L1, from + i * step, FRACTAL, name, line.at);
        }
    });
}

// L1 to L0A or L0B: squares of 16 x 16 (8-bit: 32 x 32), transposed.
template <class T>
void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                           const LoadData2dTransposeParams& p, emu::Line line = emu::Line::here()) {
    using namespace emu;
    const char* name = "LoadDataWithTranspose";
    constexpr uint64_t fractals = sizeof(T) == 2 ? 1 : 2, square = fractals * FRACTAL;
    check_l0(dst, name, line.at);
    require_space(src, {L1}, name, "the source", line.at);
    check_start(src, BLOCK, name, "the source", line.at);
    if (p.addrMode) stop(UNSUPPORTED, line.at, "LoadDataWithTranspose with addrMode 1");
    if (!p.repeatTimes) return;
    uint64_t from = src.address + p.startIndex * square, step = p.srcStride * square,
             gap = (uint64_t{p.dstGap} + 1) * FRACTAL,
             inner = (uint64_t{p.dstFracGap} + 1) * FRACTAL, to = dst.address,
             repeats = p.repeatTimes;
    Issue op(name, MTE1, line);
    touch_rows(op, L1, {from, step}, repeats, square, false);
    for (uint64_t i = 0; i < repeats; ++i)
        touch_rows(op, dst.space, {to + i * gap, inner}, fractals, FRACTAL, true);
    Space space = dst.space;
    op.commit([=] {
        for (uint64_t i = 0; i < repeats; ++i)
            transpose_square<T>(
                space, [=](uint64_t fractal) { return to + i * gap + fractal * inner; }, L1,
                from + i * step, name, line.at);
    });
}

// Fills L1 (blocks of 32 bytes), L0A or L0B (of 512).
template <class T>
void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<T>& p,
                    emu::Line line = emu::Line::here()) {
    using namespace emu;
    const char* name = "InitConstValue";
    if (dst.space != L1) check_l0(dst, name, line.at);
    require_type<T, half, bfloat16_t, int16_t, uint16_t, float, int32_t, uint32_t>(name, line.at);
    check_start(dst, BLOCK, name, "the destination", line.at);
    check_range(p.repeatTimes, 0, 32767, name, "repeatTimes", line.at);
    check_range(p.blockNum, 0, 32767, name, "blockNum", line.at);
    check_range(p.dstGap, 0, 32767, name, "dstGap", line.at);
    if (!p.repeatTimes || !p.blockNum) return;
    uint64_t unit = dst.space == L1 ? BLOCK : FRACTAL, bytes = p.blockNum * unit,
             pitch = bytes + p.dstGap * unit, repeats = p.repeatTimes, to = dst.address;
    Issue op(name, dst.space == L1 ? MTE2 : MTE1, line);
    touch_rows(op, dst.space, {to, pitch}, repeats, bytes, true);
    Space space = dst.space;
    T value = p.initValue;
    op.commit([=] {
        for (uint64_t i = 0; i < repeats; ++i)
            for (uint64_t b = 0; b < bytes; b += sizeof(T))
                store<T>(space, to + i * pitch + b, value, 0);
    });
}
template <class T>
void Fill(const LocalTensor<T>& dst, const InitConstValueParams<T>& p,
          emu::Line line = emu::Line::here()) {
    InitConstValue(dst, p, line);
}

// L1 to the bias table, in units of 64 bytes of the source; half widens to float on the way.
template <class T, class U>
void copy_to_bias_table(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                        const DataCopyParams& p, emu::Line line) {
    using namespace emu;
    const char* name = "DataCopy to the bias table";
    constexpr bool possible = (Same<T, float>::value && one_of<U, half, float>()) ||
                              (Same<T, int32_t>::value && Same<U, int32_t>::value);
    if (!possible)
        stop(MISUSE, line.at, "%s does not take %s to %s", name, TypeName<U>::text,
             TypeName<T>::text);
    require_space(src, {L1}, name, "the source", line.at);
    check_start(dst, 64, name, "the destination", line.at);
    check_start(src, BLOCK, name, "the source", line.at);
    check_count(p.blockCount, 4095, name, "blockCount", line.at);
    if (p.blockCount != 1) stop(UNSUPPORTED, line.at, "%s with blockCount %u", name, p.blockCount);
    uint64_t count = p.blockLen * 64 / sizeof(U), from = src.address, to = dst.address;
    if (!count) return;
    Issue op(name, MTE1, line);
    op.read(L1, from, count * sizeof(U));
    op.write(BT, to, count * sizeof(T));
    op.commit([=] {
        for (uint64_t i = 0; i < count; ++i) {
            Origin origin = 0;
            U value = load<U>(L1, from + i * sizeof(U), name, line.at, origin);
            store<T>(BT, to + i * sizeof(T), static_cast<T>(widen(value)), origin);
        }
    });
}

template <class T, class U, class = typename emu::Unlike<T, U>::type>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& p,
              emu::Line line = emu::Line::here()) {
    emu::require_space(dst, {emu::BT}, "DataCopy between types", "the destination", line.at);
    copy_to_bias_table(dst, src, p, line);
}

template <class C, class A, class B>
void Mmad(const LocalTensor<C>& dst, const LocalTensor<A>& a, const LocalTensor<B>& b,
          const MmadParams& p, emu::Line line = emu::Line::here()) {
    emu::check_product(dst, a, b, line.at);
    if constexpr (emu::Same<A, B>::value)
        emu::product(dst, a, b,
                     p.cmatrixInitVal  ? emu::FROM_ZERO
                     : p.cmatrixSource ? emu::FROM_BIAS
                                       : emu::FROM_L0C,
                     0, p, line);
}

template <class C, class A, class B, class D>
void Mmad(const LocalTensor<C>& dst, const LocalTensor<A>& a, const LocalTensor<B>& b,
          const LocalTensor<D>& bias, const MmadParams& p, emu::Line line = emu::Line::here()) {
    emu::check_product(dst, a, b, line.at);
    emu::require_space(bias, {emu::BT, emu::L0C}, "Mmad", "the bias", line.at);
    if (bias.space != emu::BT) emu::stop(emu::UNSUPPORTED, line.at, "Mmad with a bias in L0C");
    emu::check_start(bias, 64, "Mmad", "the bias", line.at);
    if (!emu::Same<C, D>::value)
        emu::stop(emu::MISUSE, line.at, "Mmad: the bias holds %s, the result %s",
                  emu::TypeName<D>::text, emu::TypeName<C>::text);
    if constexpr (emu::Same<A, B>::value)
        emu::product(dst, a, b, p.cmatrixInitVal ? emu::FROM_ZERO : emu::FROM_BIAS, bias.address, p,
                     line);
}

}  // namespace AscendC
