// softmax: Y[i, :] = softmax(X[i, :]), numerically stable.
//   from     softmax.py by tile2c 0.1.0
//   target   bang:mtp_592
//   again    tile2c softmax.py -o . --target bang:mtp_592 --launcher
//   text     sha256 0ff65284bf6a  (edit freely: `tile2c --merge` keeps your changes)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What softmax_launch returns: one of these, or a positive error of CNRT.
enum softmax_launch_status {
    softmax_launch_ok = 0,
    // M is not within 0 to 2147418111
    softmax_launch_M_out_of_range = -1,
    // X is null
    softmax_launch_X_null = -2,
    // Y is null
    softmax_launch_Y_null = -3,
    // the sizes ask for more blocks than a grid can have
    softmax_launch_grid_too_large = -4,
};

// Launches the kernel on the current device and returns at once; nothing was launched if a promise
// does not hold. Any number of threads may call it. Tensors are dense where no strides are given; a
// null stream is the default stream.
// The stream is cnrtQueue_t.
int softmax_launch(const void* X,  // float16 [M, 8192]
                   void* Y,  // float16 [M, 8192], written
                   int64_t M, void* stream);

// A sentence for what softmax_launch returned; nobody has to free it.
const char* softmax_launch_message(int status);

#ifdef __cplusplus
}
#endif
