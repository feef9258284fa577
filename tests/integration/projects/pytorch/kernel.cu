#include <cudnn.h>
#include <cufile.h>
#include <cusparseLt.h>

__global__ void fill(float *numbers) {
  numbers[threadIdx.x] = 1.0f;
}

size_t use(cusparseLtHandle_t *handle, float *numbers) {
  fill<<<1, 32>>>(numbers);
  cusparseLtInit(handle);
  cuFileDriverClose();
  return cudnnGetVersion();
}
