// Number types, qualifiers, built-in variables and enumerations of the dialect.
#pragma once

#include "core.h"
#define EMU_COUNTED_COPIES
#include "cores/numbers.h"

#define __BANG__ 1
#define __mlu_global__
#define __mlu_entry__
#define __mlu_func__ inline
#define __mlu_device__
#define __nram__
#define __wram__
#define __mlu_shared__
#define __ldram__
#define __mlu_const__ const
// What the builder writes where one of these qualifiers declares an array or a variable.
#define EMU_NRAM static __attribute__((section("emu_nram"), used, aligned(64)))
#define EMU_WRAM static __attribute__((section("emu_wram"), used, aligned(64)))
#define EMU_SRAM static __attribute__((section("emu_sram"), used, aligned(64)))

#define taskIdX (static_cast<int>(::emu::task.x))
#define taskIdY (static_cast<int>(::emu::task.y))
#define taskIdZ (static_cast<int>(::emu::task.z))
#define taskDimX (static_cast<int>(::emu::task.dim_x))
#define taskDimY (static_cast<int>(::emu::task.dim_y))
#define taskDimZ (static_cast<int>(::emu::task.dim_z))
#define taskId (taskIdX + taskDimX * (taskIdY + taskDimY * taskIdZ))
#define taskDim (taskDimX * taskDimY * taskDimZ)
#define coreDim 4
#define coreId (taskId % coreDim)
#define clusterId (taskId / coreDim)
#define clusterDim ((taskDim + coreDim - 1) / coreDim)

inline bool __is_ipu() { return true; }
inline bool __is_mpu() { return false; }

inline float __half2float(half x) { return x; }
inline half __float2half(float x) { return x; }
inline half __float2half_rn(float x) { return x; }
inline float __bfloat162float(bfloat16_t x) { return x; }
inline bfloat16_t __float2bfloat16_rn(float x) { return x; }

namespace emu {

template <class T>
constexpr bool is_bfloat() {
    return Same<T, bfloat16_t>::value;
}

// Vector calls take bfloat16_t from the 5xx chips on.
template <class T>
void needs_type(const char* name, int line) {
    if (is_bfloat<T>() && module.arch < 500)
        stop(MISUSE, line, "%s takes no bfloat16_t on mtp_%d", name, module.arch);
}
inline void needs_count(const char* name, int line, uint64_t count, const char* what) {
    if (count == 0 || count > 0x7FFFFFFF)
        stop(MISUSE, line, "%s: %s has to be greater than 0", name, what);
}

}  // namespace emu
