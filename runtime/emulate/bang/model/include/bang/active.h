// Functions from tables: the hardware's values are near these, within the errors that the vendor
// states; here they are exact, but for the ends where the vendor names a value.
#pragma once

#include "vector.h"

#define EMU_ACTIVE(TYPE, NAME, EXPRESSION) \
    EMU_UNARY(TYPE, active_##NAME, EXPRESSION, ON_ANY)
#define EMU_ACTIVES(TYPE)                                                                         \
    EMU_ACTIVE(TYPE, abs, fabsf(a))                                                               \
    EMU_ACTIVE(TYPE, exp, a < -7.75f ? 5.96e-8f : expf(a))                                        \
    EMU_ACTIVE(TYPE, exphp, expf(a))                                                              \
    EMU_ACTIVE(TYPE, log, logf(a))                                                                \
    EMU_ACTIVE(TYPE, loghp, logf(a))                                                              \
    EMU_ACTIVE(TYPE, sqrt, sqrtf(a))                                                              \
    EMU_ACTIVE(TYPE, sqrthp, sqrtf(a))                                                            \
    EMU_ACTIVE(TYPE, rsqrt, 1 / sqrtf(a))                                                         \
    EMU_ACTIVE(TYPE, rsqrthp, 1 / sqrtf(a))                                                       \
    EMU_ACTIVE(TYPE, recip, 1 / a)                                                                \
    EMU_ACTIVE(TYPE, reciphp, 1 / a)                                                              \
    EMU_ACTIVE(TYPE, relu, a > 0 ? a : 0)                                                         \
    EMU_ACTIVE(TYPE, sin, sinf(a))                                                                \
    EMU_ACTIVE(TYPE, cos, cosf(a))                                                                \
    EMU_ACTIVE(TYPE, tanh, tanhf(a))                                                              \
    EMU_ACTIVE(TYPE, sign, a > 0 ? 1 : a < 0 ? -1 : 0)                                            \
    EMU_ACTIVE(TYPE, sigmoid, a < -7.75f ? 0 : a > 7.75f ? 1 : 1 / (1 + expf(-a)))                \
    EMU_ACTIVE(TYPE, gelu, a < -3.875f ? -5.96e-8f : 0.5f * a * (1 + erff(a * 0.70710678f)))
EMU_ACTIVES(half)
EMU_ACTIVES(float)
#undef EMU_ACTIVES
#undef EMU_ACTIVE
