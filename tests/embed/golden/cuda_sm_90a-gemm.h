// gemm: C = A @ B
//   from     gemm.py by tile2c 0.1.0
//   target   cuda:sm_90a
//   again    tile2c gemm.py -o . --target cuda:sm_90a --launcher
//   text     sha256 5fa33a9bcdbf  (edit freely: `tile2c --merge` keeps your changes)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct __half;
struct CUstream_st;

// What gemm_launch returns: one of these, or a positive error of the cuda runtime.
enum gemm_launch_status {
    gemm_launch_ok = 0,
    // M is not within 0 to 2147418111
    gemm_launch_M_out_of_range = -1,
    // N is not within 0 to 2147418111
    gemm_launch_N_out_of_range = -2,
    // K is not within 0 to 2147418111
    gemm_launch_K_out_of_range = -3,
    // A is null
    gemm_launch_A_null = -4,
    // B is null
    gemm_launch_B_null = -5,
    // C is null
    gemm_launch_C_null = -6,
    // the sizes ask for more blocks than a grid can have
    gemm_launch_grid_too_large = -7,
    // the device has no 132096 bytes of shared memory for one block
    gemm_launch_shared_memory_too_small = -8,
    // A cannot be described to the bulk copy unit
    gemm_launch_A_not_copyable = -9,
    // B cannot be described to the bulk copy unit
    gemm_launch_B_not_copyable = -10,
    // C cannot be described to the bulk copy unit
    gemm_launch_C_not_copyable = -11,
};

// Launches the kernel on the current device and returns at once; nothing was launched if a promise
// does not hold. Any number of threads may call it. Tensors are dense where no strides are given; a
// null stream is the default stream.
int gemm_launch(const struct __half* A,  // [M, K]
                const struct __half* B,  // [K, N]
                struct __half* C,  // [M, N], written
                int64_t M, int64_t N, int64_t K, struct CUstream_st* stream);

// A sentence for what gemm_launch returned; nobody has to free it.
const char* gemm_launch_message(int status);

#ifdef __cplusplus
}
#endif
