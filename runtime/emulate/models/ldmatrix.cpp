// ldmatrix and stmatrix: 8x8 matrices of 16-bit elements, lane l names row l % 8 of matrix l / 8.
#include <cstring>

#include "../core/collective.h"
#include "../core/shadow.h"

using namespace emu;

namespace {

struct Move {
    unsigned char* row;  // nullptr: the lane names none
    int count;
    bool transposed;
    uint32_t registers[4];
};

Move& at(Group& g, int lane) { return *static_cast<Move*>(g.slot[lane]); }

// Element e (0 or 1) of register `matrix` of a lane: its row and column in the 8x8 matrix.
struct Spot {
    int row, col;
};
Spot spot(int lane, int e, bool transposed) {
    const int a = lane / 4, b = 2 * (lane % 4) + e;
    return transposed ? Spot{b, a} : Spot{a, b};
}

template <bool load>
void run(Group& g) {
    const int count = at(g, 0).count;
    const bool transposed = at(g, 0).transposed;
    for (int matrix = 0; matrix < count; ++matrix)
        for (int lane = 0; lane < 32; ++lane)
            for (int e = 0; e < 2; ++e) {
                const Spot s = spot(lane, e, transposed);
                unsigned char* element = at(g, 8 * matrix + s.row).row + 2 * s.col;
                auto* half = reinterpret_cast<unsigned char*>(&at(g, lane).registers[matrix]) + 2 * e;
                if (load)
                    std::memcpy(half, element, 2);
                else
                    std::memcpy(element, half, 2);
            }
}

// Two matrices of 16 rows of 16 bytes, transposed: registers hold four rows of a column, eight columns of
// both matrices before the next eight.
void run_bytes(Group& g) {
    for (int lane = 0; lane < 32; ++lane)
        for (int r = 0; r < 4; ++r)
            for (int e = 0; e < 4; ++e) {
                const unsigned char* row = at(g, 4 * (lane % 4) + e + 16 * (r % 2)).row;
                reinterpret_cast<unsigned char*>(&at(g, lane).registers[r])[e] = row[lane / 4 + 8 * (r / 2)];
            }
}

void prepare(Move& op, uint32_t address, Access access, const char* name, void* pc) {
    Fiber* f = me();
    enter(f);
    if (int(f->lane) >= 8 * op.count) return;
    if (address % 16)
        fail(EMU_MEMORY, format("%s gives %s the shared address %#x at %s, which is not a multiple of 16",
                                who(f).c_str(), name, address, place(pc).c_str()), f);
    op.row = shared_pointer(f, address, 16, name, pc);
    touch(f, op.row, 16, access, pc);
}

}  // namespace

extern "C" {

void emu_ldmatrix(int count, int transposed, uint32_t* registers, uint32_t address) {
    Move op{nullptr, count, transposed != 0, {}};
    prepare(op, address, Access::READ, "ldmatrix", EMU_CALLER);
    collective_of_all("ldmatrix", &op, run<true>, EMU_CALLER);
    std::memcpy(registers, op.registers, 4 * size_t(count));
}

void emu_ldmatrix_bytes(uint32_t* registers, uint32_t address) {
    Move op{nullptr, 4, true, {}};
    prepare(op, address, Access::READ, "ldmatrix", EMU_CALLER);
    collective_of_all("ldmatrix", &op, run_bytes, EMU_CALLER);
    std::memcpy(registers, op.registers, sizeof(op.registers));
}

void emu_stmatrix(int count, int transposed, const uint32_t* registers, uint32_t address) {
    Move op{nullptr, count, transposed != 0, {}};
    std::memcpy(op.registers, registers, 4 * size_t(count));
    prepare(op, address, Access::WRITE, "stmatrix", EMU_CALLER);
    collective_of_all("stmatrix", &op, run<false>, EMU_CALLER);
}
}
