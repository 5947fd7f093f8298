// softmax: Y[i, :] = softmax(X[i, :]), numerically stable.
//   from     softmax.py by tile2c 0.1.0
//   target   ascendc:ascend910b
//   again    tile2c softmax.py -o . --target ascendc:ascend910b --launcher
//   compile  bisheng -x asc --npu-arch=dav-2201 -O2 -std=c++17 -fPIC -c softmax_launch.cpp
//   kernels  softmax.ascendc.cpp is part of the launcher's object; link that with bisheng
//   text     sha256 e0fb889892bb  (edit freely: `tile2c --merge` keeps your changes)
#include "softmax.h"

#include <acl/acl.h>

// Kernels are launched where their text is.
#include "softmax.ascendc.cpp"

namespace {

// Rounding a size up to whole tiles must not leave an int.
constexpr int64_t largest_size = 2147483647 - 65536;

// An address of the device as kernels take it.
uint8_t* device_bytes(const void* pointer) {
    return static_cast<uint8_t*>(const_cast<void*>(pointer));
}

// Cores that take tiles of a grid in turn count them in an int.
bool countable(int64_t x, int64_t y, int64_t z) {
    return x <= 0 || y <= 0 || z <= 0 || x <= 2147418112 / y / z;
}

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace

int softmax_launch(const void* X,  // float16 [M, 8192]
                   void* Y,  // float16 [M, 8192], written
                   int64_t M, void* stream) {
    if (M < 0 || M > largest_size) return softmax_launch_M_out_of_range;
    if (!X && M > 0) return softmax_launch_X_null;
    if (!Y && M > 0) return softmax_launch_Y_null;
    int32_t M_int = static_cast<int32_t>(M);
    {
        if (!countable(M, 1, 1)) return softmax_launch_grid_too_large;
        const int64_t blocks = least(M, 40);
        if (blocks > 65535) return softmax_launch_grid_too_large;
        if (blocks > 0) {
            const uint32_t cores = static_cast<uint32_t>(blocks);
            softmax<<<cores, 0, stream>>>(device_bytes(X), device_bytes(Y), M_int);
            const aclError status = aclrtGetLastError(ACL_RT_THREAD_LEVEL);
            if (status != ACL_SUCCESS) return status;
        }
    }
    return softmax_launch_ok;
}

const char* softmax_launch_message(int status) {
    switch (status) {
        case softmax_launch_ok:
            return "softmax: launched";
        case softmax_launch_M_out_of_range:
            return "softmax: M is not within 0 to 2147418111";
        case softmax_launch_X_null:
            return "softmax: X is null";
        case softmax_launch_Y_null:
            return "softmax: Y is null";
        case softmax_launch_grid_too_large:
            return "softmax: the sizes ask for more blocks than a grid can have";
    }
    const char* text = aclGetRecentErrMsg();
    return text ? text : "softmax: an error of the runtime";
}
