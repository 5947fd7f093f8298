// The vendor's builtins declared, on CUDA's own headers: for type checks, nothing is linked.
#pragma once
#define TILE2C_PRODUCT_10(name) \
    __device__ void name(int*, const int*, const int*, const int*, int, int, int, int, int, int)
#define TILE2C_PRODUCT_11(name) \
    __device__ void name(int*, const int*, const int*, const int*, int, int, int, int, int, int, int)
#if __MUSA_ARCH__ == 220
TILE2C_PRODUCT_10(__musa_fmma_m32n32k16_mma);
TILE2C_PRODUCT_10(__musa_bfmma_m32n32k16_mma);
TILE2C_PRODUCT_10(__musa_imma_m32n32k32_mma);
#endif
#if __MUSA_ARCH__ == 310
TILE2C_PRODUCT_11(__musa_wmma_m16n16k16_mma);
TILE2C_PRODUCT_11(__musa_wmma_m16n16k32_mma);
#endif
