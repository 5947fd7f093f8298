// Matrix products by the maps of models/fragments.cpp.
#pragma once

extern "C" void emu_fragments(int unit, int type_a, int type_b, int type_d, void* d, const void* a,
                              const void* b, const void* c);

namespace emu {
// A product whose operands are vectors of known sizes.
template <int unit, int type_a, int type_b, int type_d, int bytes, class A, class B, class C>
EMU_INLINE C product(A a, B b, C c) {
    static_assert(sizeof(A) == bytes && sizeof(B) == bytes, "an operand of another size");
    static_assert(sizeof(C) == 16, "an accumulator of another size");
    C d;
    emu_fragments(unit, type_a, type_b, type_d, &d, &a, &b, &c);
    return d;
}
}  // namespace emu
