// MFMA and WMMA: the lanes of a wave hold pieces of A, B and C in vectors.
#include "matrix.h"

using namespace emu;

namespace {

struct Mfma {
    int m, n, k, type_a, type_b, type_d;
    int gfx12;
    void* d;
    const void *a, *b, *c;
};

Mfma& at(Group& g, int lane) { return *static_cast<Mfma*>(g.slot[lane]); }

// Lane l holds row l % m of A (column l % n of B), and a run of neighbours in k.
template <class T, class Get>
void gather(Group& g, T* a, T* b, Get get) {
    for (int l = 0; l < 64; ++l) {
        const Mfma& op = at(g, l);
        const int per_a = op.m * op.k / 64, per_b = op.n * op.k / 64;
        for (int v = 0; v < per_a; ++v) a[l % op.m * op.k + per_a * (l / op.m) + v] = get(op.type_a, op.a, v);
        for (int v = 0; v < per_b; ++v) b[(per_b * (l / op.n) + v) * op.n + l % op.n] = get(op.type_b, op.b, v);
    }
}

int row_of(const Mfma& op, int l, int v) {
    if (op.type_d == TYPE_F64) return l / 16 + 4 * v;
    return op.m == 16 ? 4 * (l / 16) + v : 8 * (v / 4) + 4 * (l / 32) + v % 4;
}

template <class D, class T, class Get>
void run_mfma(Group& g, Get get) {
    T a[32 * 64], b[64 * 32], acc[32 * 32];
    gather(g, a, b, get);
    const Mfma& first = at(g, 0);
    const int m = first.m, n = first.n, k = first.k;
    for (int l = 0; l < 64; ++l)
        for (int v = 0; v < m * n / 64; ++v)
            acc[row_of(first, l, v) * n + l % n] = static_cast<const D*>(at(g, l).c)[v];
    multiply(acc, a, b, m, n, k);
    for (int l = 0; l < 64; ++l)
        for (int v = 0; v < m * n / 64; ++v)
            static_cast<D*>(at(g, l).d)[v] = acc[row_of(first, l, v) * n + l % n];
}

void run_float(Group& g) { run_mfma<float, float>(g, element); }
void run_int(Group& g) {
    run_mfma<int32_t, int32_t>(g, [](int t, const void* p, int i) { return int32_t(element(t, p, i)); });
}
void run_double(Group& g) {
    run_mfma<double, double>(g, [](int, const void* p, int i) { return static_cast<const double*>(p)[i]; });
}

// gfx11: a lane holds a whole row, lanes 16-31 repeat lanes 0-15; gfx12: half a row each.
template <class D>
void run_wmma(Group& g) {
    D a[256], b[256], acc[256];
    for (int l = 0; l < 32; ++l) {
        const Mfma& op = at(g, l);
        const int per = op.gfx12 ? 8 : 16;
        for (int v = 0; v < per; ++v) {
            const int k = op.gfx12 ? 8 * (l / 16) + v : v;
            const D x = D(element(op.type_a, op.a, v)), y = D(element(op.type_b, op.b, v));
            if (!op.gfx12 && l >= 16 && (a[l % 16 * 16 + k] != x || b[k * 16 + l % 16] != y) && x == x && y == y) {
                Fiber* f = g.warp->lane[l];
                fail(EMU_MISUSE, format("%s calls wmma at %s with other operands than lane %d; lanes 16 to 31 "
                                        "must repeat lanes 0 to 15", who(f).c_str(), place(f->where).c_str(),
                                        l - 16), f);
            }
            a[l % 16 * 16 + k] = x;
            b[k * 16 + l % 16] = y;
        }
    }
    const auto row = [&](int l, int v) { return at(g, 0).gfx12 ? 8 * (l / 16) + v : 2 * v + l / 16; };
    for (int l = 0; l < 32; ++l)
        for (int v = 0; v < 8; ++v) acc[row(l, v) * 16 + l % 16] = static_cast<const D*>(at(g, l).c)[v];
    multiply(acc, a, b, 16, 16, 16);
    for (int l = 0; l < 32; ++l)
        for (int v = 0; v < 8; ++v) static_cast<D*>(at(g, l).d)[v] = acc[row(l, v) * 16 + l % 16];
}

}  // namespace

extern "C" {

void emu_mfma(int m, int n, int k, int type_a, int type_b, int type_d, void* d, const void* a,
              const void* b, const void* c) {
    Mfma op{m, n, k, type_a, type_b, type_d, 0, d, a, b, c};
    const Run run = type_d == TYPE_F64 ? run_double : type_d == TYPE_S32 ? run_int : run_float;
    collective_of_all("an MFMA", &op, run, EMU_CALLER);
}

void emu_wmma(int gfx12, int type_a, int type_b, int type_d, void* d, const void* a, const void* b,
              const void* c) {
    Mfma op{16, 16, 16, type_a, type_b, type_d, gfx12, d, a, b, c};
    collective_of_all("a WMMA", &op, type_d == TYPE_S32 ? run_wmma<int32_t> : run_wmma<float>, EMU_CALLER);
}
}
