// y = a x + y on the GPU. Without a GPU it says what the driver's library says, and ends with status 0: it was
// compiled and linked, which is what this example is about.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

__global__ void saxpy(int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
    int devices = 0;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices == 0) {
        std::printf("compiled with CUDA %d.%d; no GPU to run on: %s\n", CUDART_VERSION / 1000,
                    CUDART_VERSION / 10 % 100, cudaGetErrorString(found));
        return 0;
    }
    const int n = 1 << 20;
    std::vector<float> x(n, 1.0f), y(n, 2.0f);
    float *dx = nullptr, *dy = nullptr;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    saxpy<<<(n + 255) / 256, 256>>>(n, 3.0f, dx, dy);
    const cudaError_t ran = cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (const float value : y) {
        if (value != 5.0f) {
            std::printf("wrong result %g (%s)\n", value, cudaGetErrorString(ran));
            return 1;
        }
    }
    std::printf("3 * 1 + 2 = 5 on the GPU, %d times\n", n);
    return 0;
}
