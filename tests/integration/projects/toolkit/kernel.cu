#include <cuda_runtime.h>

namespace {
__global__ void square(int *numbers) {
  numbers[threadIdx.x] *= numbers[threadIdx.x];
}
} // namespace

// Returns whether the GPU computes the squares of 0 to 31.
bool squares() {
  int numbers[32];
  for (int i = 0; i < 32; ++i) {
    numbers[i] = i;
  }
  int *device = nullptr;
  cudaMalloc(&device, sizeof numbers);
  cudaMemcpy(device, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  square<<<1, 32>>>(device);
  cudaMemcpy(numbers, device, sizeof numbers, cudaMemcpyDeviceToHost);
  cudaFree(device);
  bool right = cudaGetLastError() == cudaSuccess;
  for (int i = 0; i < 32; ++i) {
    right = right && numbers[i] == i * i;
  }
  return right;
}
