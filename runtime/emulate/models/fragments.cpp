// Matrix units that are known by their maps: who holds which element of a tile, as the vendors' public
// sources state it. b is given by (n, k).
#include "matrix.h"

using namespace emu;

namespace {

using Coordinate = int (*)(int l, int v);

struct Tile {
    int values;  // of one lane
    Coordinate row, column;
};

struct Unit {
    int lanes, m, n, k;
    Tile a, b, d;
};

// clang-format off
#define F(expression) [](int l, int v) -> int { (void)l, (void)v; return expression; }
constexpr Tile mmac_16 = {4, F(l % 16), F(4 * (l / 16) + v)};
constexpr Tile mmac_32 = {8, F(l % 16), F(8 * (l / 16) + v)};
constexpr Tile mmac_d = {4, F(l % 16), F(l / 16 + 4 * v)};
constexpr Tile mxc_d = {4, F(4 * (l / 16) + v), F(l % 16)};
constexpr Tile fmma_16 = {4, F(l / 4 % 16 + 16 * (v / 2)), F(2 * (l % 4) + 8 * (l / 64) + v % 2)};
constexpr Tile fmma_16t = {4, F(2 * (l % 8) + v % 2 + 16 * (v / 2)), F(l / 8)};
constexpr Tile imma_32 = {8, F(l / 4 % 16 + 16 * (v / 4)), F(4 * (l % 4) + 16 * (l / 64) + v % 4)};
constexpr Tile fmma_d = {8, F(l / 8 % 4 + 4 * (l / 64) + 8 * (v / 2)), F(l % 8 + 8 * (l / 32 % 2) + 16 * (v % 2))};
constexpr Tile wmma_16 = {8, F(l / 4 + 8 * (v / 4)), F(2 * (l % 4) + v % 2 + 8 * (v / 2 % 2))};
constexpr Tile wmma_16t = {8, F(2 * (l % 4) + v % 2 + 8 * (v / 2 % 2)), F(l / 4 + 8 * (v / 4))};
constexpr Tile wmma_32 = {16, F(l / 4 + 8 * (v / 8)), F(4 * (l % 4) + v % 4 + 16 * (v / 4 % 2))};
constexpr Tile wmma_d = {8, F(l / 8 + 4 * (v / 2)), F(l % 8 + 8 * (v % 2))};
constexpr Tile tc01_d = {8, F(l / 4 + 8 * (v / 4)), F(l % 4 + 4 * (v % 4))};
constexpr Tile tc02_16a = {8, F(l / 4 + 8 * (v / 2 % 2)), F(2 * (l % 4) + v % 2 + 8 * (v / 4))};
constexpr Tile tc02_32a = {16, F(l / 4 + 8 * (v / 4 % 2)), F(4 * (l % 4) + v % 4 + 16 * (v / 8))};
constexpr Tile mad_16a = {4, F(2 * (l / 16) + v % 2 + 8 * (v / 2)), F(l % 16)};
constexpr Tile mad_d = {4, F(l / 16 + 4 * v), F(l % 16)};
constexpr Tile mad_16b = {4, F(l % 16), F(2 * (l / 16) + v % 2 + 8 * (v / 2))};
#undef F

const Unit units[] = {
    {64, 16, 16, 16, mmac_16, mmac_16, mmac_d},
    {64, 16, 16, 32, mmac_32, mmac_32, mmac_d},
    {64, 16, 16, 16, mmac_16, mmac_16, mxc_d},
    {128, 32, 32, 16, fmma_16, fmma_16t, fmma_d},
    {128, 32, 32, 16, fmma_16, fmma_16, fmma_d},
    {128, 32, 32, 16, fmma_16t, fmma_16t, fmma_d},
    {128, 32, 32, 16, fmma_16t, fmma_16, fmma_d},
    {128, 32, 32, 32, imma_32, imma_32, fmma_d},
    {32, 16, 16, 16, wmma_16, wmma_16t, wmma_d},
    {32, 16, 16, 16, wmma_16, wmma_16, wmma_d},
    {32, 16, 16, 16, wmma_16t, wmma_16t, wmma_d},
    {32, 16, 16, 16, wmma_16t, wmma_16, wmma_d},
    {32, 16, 16, 32, wmma_32, wmma_32, wmma_d},
    {32, 16, 16, 16, wmma_16, wmma_16, tc01_d},
    {32, 16, 16, 32, wmma_32, wmma_32, tc01_d},
    {32, 16, 16, 16, tc02_16a, wmma_16, tc02_16a},
    {32, 16, 16, 32, tc02_32a, wmma_32, tc02_16a},
    {64, 16, 16, 16, mad_16a, mad_16b, mad_d},
};
// clang-format on

struct Product {
    const Unit* unit;
    int type_a, type_b;
    void* d;
    const void *a, *b, *c;
};

Product& at(Group& g, int lane) { return *static_cast<Product*>(g.slot[lane]); }

template <class T>
void run(Group& g) {
    const Product& first = at(g, 0);
    const Unit& unit = *first.unit;
    T a[32 * 32], b[32 * 32], acc[32 * 32];
    for (int l = 0; l < unit.lanes; ++l) {
        const Product& own = at(g, l);
        for (int v = 0; v < unit.a.values; ++v)
            a[unit.a.row(l, v) * unit.k + unit.a.column(l, v)] = T(element(own.type_a, own.a, v));
        for (int v = 0; v < unit.b.values; ++v)
            b[unit.b.column(l, v) * unit.n + unit.b.row(l, v)] = T(element(own.type_b, own.b, v));
        for (int v = 0; v < unit.d.values; ++v)
            std::memcpy(&acc[unit.d.row(l, v) * unit.n + unit.d.column(l, v)],
                        static_cast<const char*>(own.c) + v * sizeof(T), sizeof(T));
    }
    multiply(acc, a, b, unit.m, unit.n, unit.k);
    for (int l = 0; l < unit.lanes; ++l)
        for (int v = 0; v < unit.d.values; ++v)
            std::memcpy(static_cast<char*>(at(g, l).d) + v * sizeof(T),
                        &acc[unit.d.row(l, v) * unit.n + unit.d.column(l, v)], sizeof(T));
}

}  // namespace

extern "C" {

// d, c: registers of 4 bytes; a, b: packed elements. Every lane of the unit takes part.
void emu_fragments(int unit, int type_a, int type_b, int type_d, void* d, const void* a, const void* b,
                   const void* c) {
    Product own{&units[unit], type_a, type_b, d, a, b, c};
    collective_of_all("a matrix product", &own, type_d == TYPE_S32 ? run<int32_t> : run<float>, EMU_CALLER);
}
}
