// mma.sync: the lanes of a warp hold pieces of A, B and C in registers.
#include "matrix.h"

using namespace emu;

#if defined(__x86_64__)
#define EMU_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define EMU_WIDE
#endif

namespace {

struct Mma {
    int m, n, k;
    int type_d, type_a, type_b, type_c;
    bool a_row, b_row;  // only m8n8k4 of sm_70 has a choice
    void *d;
    const void *a, *b, *c;
};

EMU_WIDE void multiply_floats(float* acc, const float* a, const float* b, int m, int n, int k) {
    if (n == 8) return multiply(acc, a, b, m, 8, k);
    multiply(acc, a, b, m, n, k);
}
EMU_WIDE void multiply_ints(int32_t* acc, const int32_t* a, const int32_t* b, int m, int n, int k) {
    multiply(acc, a, b, m, n, k);
}

// Register r of lane l holds `per` neighbours in k: row g + 8 * (r odd), k from per * t + 4 * per * (r / 2).
// With g = l / 4 and t = l % 4 this is every A fragment from m8n8k4.f64 to m16n8k32; B has n = g.
template <class T, class Get>
void gather_a(const Mma& op, T* a, int lane, Get get) {
    const int bits = bits_of(op.type_a), per = bits >= 32 ? 1 : 32 / bits;
    const int g = lane / 4, t = lane % 4, registers = op.m * op.k / 32 / per;
    for (int r = 0; r < registers; ++r)
        for (int j = 0; j < per; ++j) {
            const int row = g + (op.m == 16 ? 8 * (r & 1) : 0);
            const int col = per * t + j + 4 * per * (op.m == 16 ? r >> 1 : r);
            a[row * op.k + col] = get(op.a, r * per + j);
        }
}
template <class T, class Get>
void gather_b(const Mma& op, T* b, int lane, Get get) {
    const int bits = bits_of(op.type_b), per = bits >= 32 ? 1 : 32 / bits;
    const int g = lane / 4, t = lane % 4, registers = op.n * op.k / 32 / per;
    for (int r = 0; r < registers; ++r)
        for (int j = 0; j < per; ++j)
            b[(per * t + j + 4 * per * r) * op.n + g] = get(op.b, r * per + j);
}

// Accumulator value v of a lane: two neighbours in a row, then 8 rows below.
template <class F>
void for_accumulators(const Mma& op, int lane, F f) {
    for (int v = 0; v < op.m * op.n / 32; ++v) f(v, (lane / 4 + 8 * (v / 2)) * op.n + 2 * (lane % 4) + v % 2);
}

Mma& at(Group& g, int lane) { return *static_cast<Mma*>(g.slot[lane]); }

void put_float(int type, void* d, int v, float x) {
    if (type == TYPE_F16)
        static_cast<uint16_t*>(d)[v] = float_to_half(x);
    else
        static_cast<float*>(d)[v] = x;
}

void run_float(Group& group) {
    float a[16 * 32], b[32 * 8], acc[16 * 8];
    for (int l = 0; l < 32; ++l) {
        const Mma& op = at(group, l);
        gather_a(op, a, l, [&](const void* p, int i) { return element(op.type_a, p, i); });
        gather_b(op, b, l, [&](const void* p, int i) { return element(op.type_b, p, i); });
        for_accumulators(op, l, [&](int v, int i) { acc[i] = element(op.type_c, op.c, v); });
    }
    const Mma& op = at(group, 0);
    multiply_floats(acc, a, b, op.m, op.n, op.k);
    for (int l = 0; l < 32; ++l)
        for_accumulators(op, l, [&](int v, int i) { put_float(op.type_d, at(group, l).d, v, acc[i]); });
}

void run_int(Group& group) {
    int32_t a[16 * 32], b[32 * 8], acc[16 * 8];
    for (int l = 0; l < 32; ++l) {
        const Mma& op = at(group, l);
        gather_a(op, a, l, [&](const void* p, int i) { return int32_t(element(op.type_a, p, i)); });
        gather_b(op, b, l, [&](const void* p, int i) { return int32_t(element(op.type_b, p, i)); });
        for_accumulators(op, l, [&](int v, int i) { acc[i] = static_cast<const int32_t*>(op.c)[v]; });
    }
    const Mma& op = at(group, 0);
    multiply_ints(acc, a, b, op.m, op.n, op.k);
    for (int l = 0; l < 32; ++l)
        for_accumulators(op, l, [&](int v, int i) { static_cast<int32_t*>(at(group, l).d)[v] = acc[i]; });
}

void run_double(Group& group) {
    double a[16 * 16], b[16 * 8], acc[16 * 8];
    const auto get = [](const void* p, int i) { return static_cast<const double*>(p)[i]; };
    for (int l = 0; l < 32; ++l) {
        const Mma& op = at(group, l);
        gather_a(op, a, l, get);
        gather_b(op, b, l, get);
        for_accumulators(op, l, [&](int v, int i) { acc[i] = get(op.c, v); });
    }
    const Mma& op = at(group, 0);
    multiply(acc, a, b, op.m, op.n, op.k);
    for (int l = 0; l < 32; ++l)
        for_accumulators(op, l, [&](int v, int i) { static_cast<double*>(at(group, l).d)[v] = acc[i]; });
}

// m8n8k4 with halves: four products, one for each quad pair q. A lane's row (or column) is r.
void run_quad_pairs(Group& group) {
    for (int q = 0; q < 4; ++q) {
        float a[8 * 4], b[4 * 8], acc[8 * 8];
        const auto row_of = [](int l) { return l % 4 + 4 * (l / 16); };
        const auto place = [](const Mma& op, int l, int v, int r) {
            // f16 accumulators: a row a lane; f32: 2 x 2 patches.
            if (op.type_c == TYPE_F16) return r * 8 + v;
            return (l % 2 + 2 * (v / 2 % 2) + 4 * (l / 16)) * 8 + 4 * (v / 4) + 2 * (l / 2 % 2) + v % 2;
        };
        const auto place_d = [&](const Mma& op, int l, int v, int r) {
            Mma as_d = op;
            as_d.type_c = op.type_d;
            return place(as_d, l, v, r);
        };
        for (int l = 0; l < 32; ++l) {
            if (l / 4 % 4 != q) continue;
            const Mma& op = at(group, l);
            const int r = row_of(l);
            for (int v = 0; v < 4; ++v) {
                const float x = element(TYPE_F16, op.a, v), y = element(TYPE_F16, op.b, v);
                // Against its natural order a lane holds 4 neighbours of one k instead.
                if (op.a_row) a[r * 4 + v] = x;
                else a[(v + 4 * (l / 16)) * 4 + l % 4] = x;
                if (op.b_row) b[l % 4 * 8 + v + 4 * (l / 16)] = y;
                else b[v * 8 + r] = y;
            }
            for (int v = 0; v < 8; ++v) acc[place(op, l, v, r)] = element(op.type_c, op.c, v);
        }
        multiply(acc, a, b, 8, 8, 4);
        for (int l = 0; l < 32; ++l) {
            if (l / 4 % 4 != q) continue;
            const Mma& op = at(group, l);
            for (int v = 0; v < 8; ++v) put_float(op.type_d, op.d, v, acc[place_d(op, l, v, row_of(l))]);
        }
    }
}

Run run_for(const Mma& op) {
    if (op.m == 8 && op.k == 4 && op.type_a == TYPE_F16) return run_quad_pairs;
    if (op.type_a == TYPE_F64) return run_double;
    return is_integer(op.type_a) ? run_int : run_float;
}

}  // namespace

// Registers as they lie: 32-bit words, doubles for f64.
extern "C" void emu_mma(int m, int n, int k, int type_d, int type_a, int type_b, int type_c, int a_row,
                        int b_row, void* d, const void* a, const void* b, const void* c) {
    Mma op{m, n, k, type_d, type_a, type_b, type_c, a_row != 0, b_row != 0, d, a, b, c};
    collective_of_all("mma.sync", &op, run_for(op), EMU_CALLER);
}
