// NVIDIA's 8-bit floats as a host program holds them: bytes, without arithmetic.
#pragma once

struct __nv_fp8_e4m3 {
    unsigned char __x;
};
struct __nv_fp8_e5m2 {
    unsigned char __x;
};
