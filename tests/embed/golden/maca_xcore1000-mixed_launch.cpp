// mixed: Scales, twice.
//   from     mixed.py by tile2c 0.1.0
//   target   maca:xcore1000
//   again    tile2c mixed.py -o . --target maca:xcore1000 --launcher
//   compile  mxcc -x maca --offload-arch=xcore1000 -O2 -std=c++17 -I$MACA_PATH/include
//            -c mixed_launch.cpp
//   kernels  mxcc -x maca --offload-arch=xcore1000 -O3 -std=c++17 -I$MACA_PATH/include -c
//            mixed.maca; link both objects with mcruntime
//   text     sha256 d2557edc284f  (edit freely: `tile2c --merge` keeps your changes)
#include "mixed.h"

#include <mc_runtime.h>
#include <string.h>

// What mixed.maca exports, as its compiler shows it to the host: only the addresses are used.
namespace kernels {
extern "C" __global__ void mixed();
extern "C" __global__ void mixed_stream();
}  // namespace kernels

namespace {

// Rounding a size up to whole tiles must not leave an int.
constexpr int64_t largest_size = 2147483647 - 65536;

struct Grid {
    int64_t x, y, z;
    bool empty() const { return x <= 0 || y <= 0 || z <= 0; }
};

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The bits of the half that is nearest, ties to even.
uint16_t half_bits(float value) {
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
    if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
    if (rest >= 0x38800000) {
        const uint32_t up = 0xfff + (rest >> 13 & 1);
        return static_cast<uint16_t>(sign | ((rest + up - 0x38000000) >> 13));
    }
    // Subnormal: a sum with one half keeps just the digits that it has.
    const float sum = (value < 0 ? -value : value) + 0.5f;
    memcpy(&bits, &sum, sizeof bits);
    return static_cast<uint16_t>(sign | (bits - 0x3f000000));
}

// One launch. A grid without blocks has nothing to do; one that no device takes is refused.
template <typename... Values>
int launch(void (*kernel)(), const Grid& grid, dim3 block, size_t shared, mcStream_t stream,
           Values&... values) {
    if (grid.empty()) return mixed_launch_ok;
    if (grid.x > 2147483647 || grid.y > 65535 || grid.z > 65535) {
        return mixed_launch_grid_too_large;
    }
    const void* function = reinterpret_cast<const void*>(kernel);
    const unsigned x = static_cast<unsigned>(grid.x), y = static_cast<unsigned>(grid.y);
    const dim3 blocks(x, y, static_cast<unsigned>(grid.z));
    void* args[] = {(void*)&values...};
    return mcLaunchKernel(function, blocks, block, args, shared, stream);
}

}  // namespace

size_t mixed_workspace_bytes(int64_t M) {
    return static_cast<size_t>((64 * M * 4 + 255) / 256 * 256);
}

int mixed_launch(const void* A,  // float16 [M, 64]
                 const int8_t* register_,  // [64]
                 float alpha,  // a float16
                 float beta, int32_t n,
                 float* stream,  // [M, 64], read and written
                 const void* half,  // bfloat16 [M]
                 int64_t M,
                 void* workspace,  // scratch memory on the device
                 size_t workspace_bytes, void* stream_) {
    if (M < 0 || M > largest_size) return mixed_launch_M_out_of_range;
    if (!A && M > 0) return mixed_launch_A_null;
    if (!register_) return mixed_launch_register_null;
    if (!stream && M > 0) return mixed_launch_stream_null;
    if (!half && M > 0) return mixed_launch_half_null;
    const size_t needed = mixed_workspace_bytes(M);
    if (workspace_bytes < needed) return mixed_launch_workspace_too_small;
    if (!workspace && needed > 0) return mixed_launch_workspace_null;
    if (address(workspace) % 256 != 0) return mixed_launch_workspace_misaligned;
    uint16_t alpha_narrow = half_bits(alpha);
    int32_t M_int = static_cast<int32_t>(M);
    {
        const Grid grid = {(M + 31) / 32, 1, 1};
        void* scratch_scratch = static_cast<char*>(workspace);
        const int status =
            launch(kernels::mixed, grid, dim3(64, 1, 1), 0, static_cast<mcStream_t>(stream_), A,
                   register_, alpha_narrow, stream, half, scratch_scratch, M_int);
        if (status != mixed_launch_ok) return status;
    }
    if (n > 3) {
        const Grid grid = {(M + 31) / 32, 1, 1};
        const int status = launch(kernels::mixed_stream, grid, dim3(64, 1, 1), 0,
                                  static_cast<mcStream_t>(stream_), beta, stream, M_int);
        if (status != mixed_launch_ok) return status;
    }
    return mixed_launch_ok;
}

const char* mixed_launch_message(int status) {
    switch (status) {
        case mixed_launch_ok:
            return "mixed: launched";
        case mixed_launch_M_out_of_range:
            return "mixed: M is not within 0 to 2147418111";
        case mixed_launch_A_null:
            return "mixed: A is null";
        case mixed_launch_register_null:
            return "mixed: register is null";
        case mixed_launch_stream_null:
            return "mixed: stream is null";
        case mixed_launch_half_null:
            return "mixed: half is null";
        case mixed_launch_workspace_too_small:
            return "mixed: the workspace is too small";
        case mixed_launch_workspace_null:
            return "mixed: the workspace is null";
        case mixed_launch_workspace_misaligned:
            return "mixed: the workspace does not start at a multiple of 256 bytes";
        case mixed_launch_grid_too_large:
            return "mixed: the sizes ask for more blocks than a grid can have";
    }
    return mcGetErrorString(static_cast<mcError_t>(status));
}
