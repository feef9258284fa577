// Asks each library for its version, compiles a kernel at run time, and looks for a GPU: one line each.
#include <cstdio>
#include <string>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <cufft.h>
#include <cufile.h>
#include <cupti.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <cusparseLt.h>
#include <nccl.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include <nvtx3/nvToolsExt.h>

bool squares();

template <typename Get> void print_properties(const char *name, Get get) {
  int major = -1, minor = -1, patch = -1;
  get(MAJOR_VERSION, &major);
  get(MINOR_VERSION, &minor);
  get(PATCH_LEVEL, &patch);
  std::printf("%s=%d.%d.%d\n", name, major, minor, patch);
}

// Compiles a kernel that includes a header of the toolkit.
const char *compile_at_run_time(const char *include) {
  const char *source = "#include <cuda_fp16.h>\n"
                       "extern \"C\" __global__ void halve(__half *x) { *x = *x * __float2half(0.5f); }\n";
  const std::string folder = std::string("--include-path=") + include;
  const char *options[] = {"--gpu-architecture=sm_90", folder.c_str()};
  nvrtcProgram program;
  nvrtcCreateProgram(&program, source, "halve.cu", 0, nullptr, nullptr);
  return nvrtcGetErrorString(nvrtcCompileProgram(program, 2, options));
}

int main(int, char **arguments) {
  int cudart = 0, nccl = 0, nvrtc_major = 0, nvrtc_minor = 0, cufile = 0;
  unsigned linker_major = 0, linker_minor = 0;
  uint32_t cupti = 0;
  cudaRuntimeGetVersion(&cudart);
  ncclGetVersion(&nccl);
  nvrtcVersion(&nvrtc_major, &nvrtc_minor);
  nvJitLinkVersion(&linker_major, &linker_minor);
  cuptiGetVersion(&cupti);
  cuFileGetVersion(&cufile);
  nvtxMarkA("versions");

  std::printf("cudart=%d\n", cudart);
  print_properties("cublas", cublasGetProperty);
  std::printf("cublasLt=%zu\n", cublasLtGetVersion());
  print_properties("cusparse", cusparseGetProperty);
  print_properties("cusolver", cusolverGetProperty);
  print_properties("cufft", cufftGetProperty);
  print_properties("curand", curandGetProperty);
  print_properties("cusparselt", cusparseLtGetProperty);
  std::printf("cudnn=%zu\n", cudnnGetVersion());
  std::printf("nccl=%d\n", nccl);
  std::printf("nvrtc=%d.%d\n", nvrtc_major, nvrtc_minor);
  std::printf("nvjitlink=%u.%u\n", linker_major, linker_minor);
  std::printf("cupti=%u\n", cupti);
  std::printf("cufile=%d\n", cufile);
  std::printf("run-time compilation=%s\n", compile_at_run_time(arguments[1]));

  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  std::printf("device=%s\n", cudaGetErrorName(status));
  if (status == cudaSuccess) {
    std::printf("kernel=%s\n", squares() ? "right" : "wrong");
  }
}
