// wgmma: products of a warpgroup, in flight from issue to wait.
#pragma once
#include "../include/emulate/codes.h"
#include "units.h"

namespace emu {

// One instruction's form; as the text names it.
struct WgmmaForm {
    int n, k;  // m is 64
    int type_d, type_a, type_b;
    bool saturate;
    int scale_a, scale_b;  // 1 or -1
    int major_a, major_b;  // 1: MN-major
    bool a_in_registers;
    bool operator==(const WgmmaForm& o) const {
        return n == o.n && k == o.k && type_d == o.type_d && type_a == o.type_a && type_b == o.type_b &&
               saturate == o.saturate && scale_a == o.scale_a && scale_b == o.scale_b &&
               major_a == o.major_a && major_b == o.major_b && a_in_registers == o.a_in_registers;
    }
};

// 64 x n accumulators of a warpgroup, by row; what the registers hold when nothing is in flight.
struct Accumulators {
    int n = 0, type = TYPE_F32;
    std::vector<float> floats;   // f32 and f16
    std::vector<int32_t> ints;   // s32
    uint32_t last[WARPGROUP] = {};   // by lane: the number of its last operation on them
    bool in_flight[WARPGROUP] = {};  // by lane: poisoned, to be stored by its wait
    bool touched[WARPGROUP] = {};    // by lane: accessed since the lane's last wgmma.fence
    void* touched_pc = nullptr;
    std::vector<void*> registers[WARPGROUP];  // by lane: one if they lie side by side
    size_t bytes() const { return size_t(n) / 2 * (type == TYPE_F16 ? 2 : 4); }
};

// A lane's registers into the tile, out of it, and filled with NaN while the tile is in flight.
void read_registers(Accumulators& acc, uint32_t lane);
void write_registers(Accumulators& acc, uint32_t lane);
void poison(Accumulators& acc, uint32_t lane);
// Whether the byte at `at` belongs to one of the lane's registers.
bool covers(const Accumulators& acc, uint32_t lane, uintptr_t at);

// An operand in shared memory.
struct Operand {
    const Block* block;
    uint64_t descriptor;
    int rows, k, element_bytes;
    bool mn_major;
};
// The byte of the arena where element (mn, k) lies.
uint32_t operand_byte(const Operand& o, int mn, int k);

// Multiplies: acc (+)= a * b with a 64 x k, b k x n, both as floats by row.
void multiply_floats(float* acc, const float* a, const float* b, int n, int k);
void multiply_ints(int32_t* acc, const int32_t* a, const int32_t* b, int n, int k, bool saturate);
void multiply_float8(float* acc, const float* a, const float* b, int n, int k);

}  // namespace emu
