// Links cuRAND and the runtime, which lie in two components of the toolkit.
#include <cuda_runtime.h>
#include <curand.h>

__global__ void scale(float *values, float by) { values[threadIdx.x] *= by; }

extern "C" int uniform(float *values, int count) {
  curandGenerator_t generator;
  if (curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) != CURAND_STATUS_SUCCESS)
    return 1;
  curandGenerateUniform(generator, values, count);
  scale<<<1, count>>>(values, 2.0f);
  return curandDestroyGenerator(generator) != CURAND_STATUS_SUCCESS;
}
