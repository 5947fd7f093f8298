// Multiplies, adds a row, and compares with the same in plain C++.
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "add_rows.h"
#include "scaled_product_block_M128.h"
#include "scaled_product_block_M64.h"

namespace {

template <typename T>
T* on_device(const std::vector<T>& values) {
    void* pointer = nullptr;
    if (cudaMalloc(&pointer, values.size() * sizeof(T)) != cudaSuccess) return nullptr;
    cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    return static_cast<T*>(pointer);
}

bool refused(int status, const char* message) {
    std::printf("refused: %s\n", message);
    return status != 0;
}

}  // namespace

int main() {
    const int M = 130, N = 72, K = 48;
    std::vector<__half> a(M * K), b(K * N);
    std::vector<float> row(N), result(M * N);
    for (int i = 0; i < M * K; ++i) a[i] = __float2half_rn(float(i % 7) - 3);
    for (int i = 0; i < K * N; ++i) b[i] = __float2half_rn(float(i % 5) - 2);
    for (int j = 0; j < N; ++j) row[j] = float(j);
    __half *A = on_device(a), *B = on_device(b);
    float *R = on_device(row), *C = on_device(result), *Y = on_device(result);

    int status = scaled_product_block_M64_launch(A, B, C, 0.5f, M, N, K, nullptr);
    if (status != 0) {
        std::printf("%s\n", scaled_product_block_M64_launch_message(status));
        return 1;
    }
    status = add_rows_launch(C, R, Y, M, N, nullptr);
    if (status != 0) {
        std::printf("%s\n", add_rows_launch_message(status));
        return 1;
    }
    if (cudaMemcpy(result.data(), Y, result.size() * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess)
        return 1;
    double worst = 0;
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = 0;
            for (int k = 0; k < K; ++k) sum += __half2float(a[i * K + k]) * __half2float(b[k * N + j]);
            worst = std::fmax(worst, std::fabs(sum * 0.5f + row[j] - result[i * N + j]));
        }
    std::printf("largest error: %g\n", worst);

    // Broken promises are told by name, and nothing is launched.
    bool right = worst < 1e-3;
    status = scaled_product_block_M128_launch(A, B, C, 1, M, N, 40, nullptr);
    right &= refused(status, scaled_product_block_M128_launch_message(status));
    status = scaled_product_block_M128_launch(nullptr, B, C, 1, M, N, K, nullptr);
    right &= refused(status, scaled_product_block_M128_launch_message(status));
    status = add_rows_launch(C, R, Y, M, 0, nullptr);
    right &= refused(status, add_rows_launch_message(status));
    return right ? 0 : 1;
}
