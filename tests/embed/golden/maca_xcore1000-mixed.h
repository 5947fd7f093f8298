// mixed: Scales, twice.
//   from     mixed.py by tile2c 0.1.0
//   target   maca:xcore1000
//   again    tile2c mixed.py -o . --target maca:xcore1000 --launcher
//   text     sha256 5a3e5685d7a4  (edit freely: `tile2c --merge` keeps your changes)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What mixed_launch returns: one of these, or a positive error of MACA's runtime.
enum mixed_launch_status {
    mixed_launch_ok = 0,
    // M is not within 0 to 2147418111
    mixed_launch_M_out_of_range = -1,
    // A is null
    mixed_launch_A_null = -2,
    // register is null
    mixed_launch_register_null = -3,
    // stream is null
    mixed_launch_stream_null = -4,
    // half is null
    mixed_launch_half_null = -5,
    // the workspace is too small
    mixed_launch_workspace_too_small = -6,
    // the workspace is null
    mixed_launch_workspace_null = -7,
    // the workspace does not start at a multiple of 256 bytes
    mixed_launch_workspace_misaligned = -8,
    // the sizes ask for more blocks than a grid can have
    mixed_launch_grid_too_large = -9,
};

// Launches the kernel on the current device and returns at once; nothing was launched if a promise
// does not hold. Any number of threads may call it. Tensors are dense where no strides are given; a
// null stream is the default stream.
// The stream is mcStream_t.
int mixed_launch(const void* A,  // float16 [M, 64]
                 const int8_t* register_,  // [64]
                 float alpha,  // a float16
                 float beta, int32_t n,
                 float* stream,  // [M, 64], read and written
                 const void* half,  // bfloat16 [M]
                 int64_t M,
                 void* workspace,  // scratch memory on the device
                 size_t workspace_bytes, void* stream_);

// Bytes of scratch memory that a launch with these sizes needs.
size_t mixed_workspace_bytes(int64_t M);

// A sentence for what mixed_launch returned; nobody has to free it.
const char* mixed_launch_message(int status);

#ifdef __cplusplus
}
#endif
