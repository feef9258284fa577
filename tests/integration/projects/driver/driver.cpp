// Calls functions that the driver's header renames (cuMemAlloc is cuMemAlloc_v2) and some that it does not.
#include <cuda.h>

int main() {
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  CUtensorMap map;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) {
    return 1;
  }
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxPushCurrent(context);
  cuMemAlloc(&memory, 4096);
  cuMemcpyDtoH(&map, memory, sizeof map);
  cuLaunchKernelEx(nullptr, nullptr, nullptr, nullptr);
  return cuMemFree(memory);
}
