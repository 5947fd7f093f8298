// gemm: C = A @ B
//   from     gemm.py by tile2c 0.1.0
//   target   cuda:sm_90a
//   again    tile2c gemm.py -o . --target cuda:sm_90a --launcher
//   compile  g++ -std=c++17 -O2 -I /usr/local/cuda/include -c gemm_launch.cpp
//   kernels  nvcc -arch=sm_90a -O3 -std=c++17 -c gemm.cu; link both objects with cudart
//   text     sha256 302ab1d47dd8  (edit freely: `tile2c --merge` keeps your changes)
#include "gemm.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

// What gemm.cu exports, as its compiler shows it to the host: only the addresses are used.
namespace kernels {
extern "C" void gemm();
extern "C" void gemm_any();
extern "C" void gemm_clusters();
}  // namespace kernels

namespace {

// Rounding a size up to whole tiles must not leave an int.
constexpr int64_t largest_size = 2147483647 - 65536;

struct Grid {
    int64_t x, y, z;
    bool empty() const { return x <= 0 || y <= 0 || z <= 0; }
};

// Blocks that take tiles of a grid in turn count them in an int.
bool countable(const Grid& tiles) {
    return tiles.empty() || tiles.x <= 2147418112 / tiles.y / tiles.z;
}

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// A function of the driver: it is asked for, not linked.
template <typename Function>
Function* of_driver(const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult known = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &known);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &known);
#endif
    const bool there = status == cudaSuccess && known == cudaDriverEntryPointSuccess;
    return there ? reinterpret_cast<Function*>(found) : nullptr;
}

// Describes a tensor to the bulk copy unit.
bool encode(CUtensorMap* map, CUtensorMapDataType kind, unsigned rank, const void* start,
            const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
            const cuuint32_t* steps, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
            CUtensorMapFloatOOBfill fill) {
    const auto encoder = of_driver<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
    return encoder && encoder(map, kind, rank, const_cast<void*>(start), dims, strides, box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, l2, fill) == CUDA_SUCCESS;
}

// One launch. A grid without blocks has nothing to do; one that no device takes is refused.
template <typename... Values>
int launch(void (*kernel)(), const Grid& grid, dim3 block, dim3 cluster, size_t shared,
           cudaStream_t stream, Values&... values) {
    if (grid.empty()) return gemm_launch_ok;
    if (grid.x > 2147483647 || grid.y > 65535 || grid.z > 65535) {
        return gemm_launch_grid_too_large;
    }
    const void* function = reinterpret_cast<const void*>(kernel);
    if (shared > 49152) {  // more than blocks get without being asked
        int device = 0, limit = 0;
        cudaError_t status = cudaGetDevice(&device);
        if (status != cudaSuccess) return status;
        status = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        if (status != cudaSuccess) return status;
        if (shared > static_cast<size_t>(limit)) return gemm_launch_shared_memory_too_small;
        const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
        status = cudaFuncSetAttribute(function, attribute, static_cast<int>(shared));
        if (status != cudaSuccess) return status;
    }
    const unsigned x = static_cast<unsigned>(grid.x), y = static_cast<unsigned>(grid.y);
    const dim3 blocks(x, y, static_cast<unsigned>(grid.z));
    void* args[] = {(void*)&values...};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = cluster.x * cluster.y * cluster.z > 1;  // blocks on their own need none
    return cudaLaunchKernelExC(&config, function, args);
}

}  // namespace

int gemm_launch(const struct __half* A,  // [M, K]
                const struct __half* B,  // [K, N]
                struct __half* C,  // [M, N], written
                int64_t M, int64_t N, int64_t K, struct CUstream_st* stream) {
    if (M < 0 || M > largest_size) return gemm_launch_M_out_of_range;
    if (N < 0 || N > largest_size) return gemm_launch_N_out_of_range;
    if (K < 0 || K > largest_size) return gemm_launch_K_out_of_range;
    if (!A && M > 0 && K > 0) return gemm_launch_A_null;
    if (!B && K > 0 && N > 0) return gemm_launch_B_null;
    if (!C && M > 0 && N > 0) return gemm_launch_C_null;
    int32_t M_int = static_cast<int32_t>(M);
    int32_t N_int = static_cast<int32_t>(N);
    int32_t K_int = static_cast<int32_t>(K);
    int sms = 0;  // multiprocessors of the device
    {
        int device = 0;
        cudaError_t status = cudaGetDevice(&device);
        if (status != cudaSuccess) return status;
        status = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
        if (status != cudaSuccess) return status;
    }
    if (K % 8 == 0 && N % 8 == 0 && M > 0 && K > 0 && N > 0 && address(A) % 16 == 0 &&
        address(B) % 16 == 0 && address(C) % 16 == 0 &&
        least(sms, (N + 127) / 128 * ((M + 127) / 128)) % 2 == 0 && (M + 127) / 128 % 2 == 0 &&
        (N + 127) / 128 * ((M + 127) / 128) > sms && N * 2 % 128 != 0) {
        const Grid tiles = {(N + 127) / 128, (M + 127) / 128, 1};
        if (!countable(tiles)) return gemm_launch_grid_too_large;
        const Grid grid = {least(sms, (N + 127) / 128 * ((M + 127) / 128)), 1, 1};
        CUtensorMap A_map;
        {
            const cuuint64_t dims[] = {cuuint64_t(K), cuuint64_t(M)};
            const cuuint64_t strides[] = {cuuint64_t(K * 2)};
            const cuuint32_t box[] = {32, 128}, steps[] = {1, 1};
            const bool made =
                encode(&A_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, A, dims, strides, box, steps,
                       CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
            if (!made && !grid.empty()) return gemm_launch_A_not_copyable;
        }
        CUtensorMap B_map;
        {
            const cuuint64_t dims[] = {cuuint64_t(N), cuuint64_t(K)};
            const cuuint64_t strides[] = {cuuint64_t(N * 2)};
            const cuuint32_t box[] = {64, 32}, steps[] = {1, 1};
            const bool made =
                encode(&B_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, B, dims, strides, box, steps,
                       CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
            if (!made && !grid.empty()) return gemm_launch_B_not_copyable;
        }
        CUtensorMap C_map;
        {
            const cuuint64_t dims[] = {cuuint64_t(N), cuuint64_t(M)};
            const cuuint64_t strides[] = {cuuint64_t(N * 2)};
            const cuuint32_t box[] = {64, 64}, steps[] = {1, 1};
            const bool made =
                encode(&C_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, C, dims, strides, box, steps,
                       CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
            if (!made && !grid.empty()) return gemm_launch_C_not_copyable;
        }
        const int status = launch(kernels::gemm_clusters, grid, dim3(384, 1, 1), dim3(2, 1, 1),
                                  132096, stream, A_map, B_map, C_map, M_int, N_int, K_int);
        if (status != gemm_launch_ok) return status;
    } else if (K % 8 == 0 && N % 8 == 0 && M > 0 && K > 0 && N > 0 && address(A) % 16 == 0 &&
               address(B) % 16 == 0 && address(C) % 16 == 0) {
        const Grid tiles = {(N + 127) / 128, (M + 127) / 128, 1};
        if (!countable(tiles)) return gemm_launch_grid_too_large;
        const Grid grid = {least(sms, (N + 127) / 128 * ((M + 127) / 128)), 1, 1};
        CUtensorMap A_map;
        {
            const cuuint64_t dims[] = {cuuint64_t(K), cuuint64_t(M)};
            const cuuint64_t strides[] = {cuuint64_t(K * 2)};
            const cuuint32_t box[] = {32, 128}, steps[] = {1, 1};
            const bool made =
                encode(&A_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, A, dims, strides, box, steps,
                       CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
            if (!made && !grid.empty()) return gemm_launch_A_not_copyable;
        }
        CUtensorMap B_map;
        {
            const cuuint64_t dims[] = {cuuint64_t(N), cuuint64_t(K)};
            const cuuint64_t strides[] = {cuuint64_t(N * 2)};
            const cuuint32_t box[] = {64, 32}, steps[] = {1, 1};
            const bool made =
                encode(&B_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, B, dims, strides, box, steps,
                       CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
            if (!made && !grid.empty()) return gemm_launch_B_not_copyable;
        }
        CUtensorMap C_map;
        {
            const cuuint64_t dims[] = {cuuint64_t(N), cuuint64_t(M)};
            const cuuint64_t strides[] = {cuuint64_t(N * 2)};
            const cuuint32_t box[] = {64, 64}, steps[] = {1, 1};
            const bool made =
                encode(&C_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, C, dims, strides, box, steps,
                       CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
            if (!made && !grid.empty()) return gemm_launch_C_not_copyable;
        }
        const int status = launch(kernels::gemm, grid, dim3(384, 1, 1), dim3(1, 1, 1), 132096,
                                  stream, A_map, B_map, C_map, M_int, N_int, K_int);
        if (status != gemm_launch_ok) return status;
    } else {
        const Grid grid = {(N + 127) / 128, (M + 127) / 128, 1};
        const int status = launch(kernels::gemm_any, grid, dim3(256, 1, 1), dim3(1, 1, 1), 0,
                                  stream, A, B, C, M_int, N_int, K_int);
        if (status != gemm_launch_ok) return status;
    }
    return gemm_launch_ok;
}

const char* gemm_launch_message(int status) {
    switch (status) {
        case gemm_launch_ok:
            return "gemm: launched";
        case gemm_launch_M_out_of_range:
            return "gemm: M is not within 0 to 2147418111";
        case gemm_launch_N_out_of_range:
            return "gemm: N is not within 0 to 2147418111";
        case gemm_launch_K_out_of_range:
            return "gemm: K is not within 0 to 2147418111";
        case gemm_launch_A_null:
            return "gemm: A is null";
        case gemm_launch_B_null:
            return "gemm: B is null";
        case gemm_launch_C_null:
            return "gemm: C is null";
        case gemm_launch_grid_too_large:
            return "gemm: the sizes ask for more blocks than a grid can have";
        case gemm_launch_shared_memory_too_small:
            return "gemm: the device has no 132096 bytes of shared memory for one block";
        case gemm_launch_A_not_copyable:
            return "gemm: A cannot be described to the bulk copy unit";
        case gemm_launch_B_not_copyable:
            return "gemm: B cannot be described to the bulk copy unit";
        case gemm_launch_C_not_copyable:
            return "gemm: C cannot be described to the bulk copy unit";
    }
    return cudaGetErrorString(static_cast<cudaError_t>(status));
}
