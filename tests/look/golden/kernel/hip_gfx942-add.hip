// add: C = A + B, element by element.
//   from     add.py by tile2c 0.1.0
//   target   hip:gfx942 (never run on silicon)
//   again    tile2c add.py -o . --target hip:gfx942
//   compile  hipcc --genco --offload-arch=gfx942 -O3 -std=c++17 add.hip -o add.hsaco
//   launch   grid ((N + 1023) / 1024), block 256, no dynamic shared memory
//   sizes    N is free
//   needs    A, B and C at multiples of 16 bytes
//   text     sha256 d62fccf8ba78  (edit freely: `tile2c --merge` keeps your changes)
#include <hip/hip_runtime.h>

constexpr int block_N = 1024;

// `n` neighbours that move in one access: a vector, which the compiler keeps in registers.
template <typename T, int n>
using Pack = T __attribute__((ext_vector_type(n)));

// Reads n neighbours in one access, with zeros at and past `valid`.
template <typename T, int n>
static __device__ void load_vector(T (&dst)[n], const T* src, int valid) {
    if (valid >= n) {
        *reinterpret_cast<Pack<T, n>*>(dst) = *reinterpret_cast<const Pack<T, n>*>(src);
    } else {
        for (int v = 0; v < n; ++v) dst[v] = v < valid ? src[v] : T();
    }
}

// Writes n neighbours in one access; leaves out those at and past `valid`.
template <typename T, int n>
static __device__ void store_vector(T* dst, const T (&src)[n], int valid) {
    if (valid >= n) {
        *reinterpret_cast<Pack<T, n>*>(dst) = *reinterpret_cast<const Pack<T, n>*>(src);
    } else {
        for (int v = 0; v < n; ++v)
            if (v < valid) dst[v] = src[v];
    }
}

extern "C" __global__ void __launch_bounds__(256) add(const float* __restrict__ A,  // [N]
                                                      const float* __restrict__ B,  // [N]
                                                      float* __restrict__ C,  // [N]
                                                      int N) {
    const int bx = blockIdx.x;

    // for i in T.Parallel(block_N)
    {
        const int i = threadIdx.x * 4;
        const int at = bx * block_N + i;
        __align__(16) float A_part[4];
        load_vector(A_part, &A[at], N - at);
        __align__(16) float B_part[4];
        load_vector(B_part, &B[at], N - at);
        __align__(16) float C_part[4];
        for (int v = 0; v < 4; ++v) C_part[v] = A_part[v] + B_part[v];
        store_vector(&C[at], C_part, N - at);
    }
}
