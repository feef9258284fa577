"""Compile a CUDA kernel against torch and import it: ``tenv run ext -- python examples/kernel.py``.

It includes the headers that most extensions include: of torch, cuBLAS, cuRAND, CUB and Thrust. It runs the kernel where
there is a GPU.
"""

import os

import torch
from torch.utils.cpp_extension import load_inline

if not torch.cuda.is_available():  # torch asks the GPUs of the machine; without one it needs a list
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")

SOURCE = r"""
#include <ATen/cuda/CUDABlas.h>
#include <ATen/cuda/CUDAContext.h>
#include <cub/block/block_reduce.cuh>
#include <cublas_v2.h>
#include <curand_kernel.h>
#include <thrust/functional.h>

__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = thrust::plus<float>()(x[i], x[i]);
}

at::Tensor doubled(at::Tensor x) {
  auto y = at::empty_like(x);
  int n = x.numel();
  scale<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

kernel = load_inline("kernel", "at::Tensor doubled(at::Tensor x);", cuda_sources=SOURCE, functions=["doubled"])
print(f"compiled and imported: torch {torch.__version__}, CUDA {torch.version.cuda}")
if torch.cuda.is_available():
    x = torch.rand(1000, device="cuda")
    assert torch.equal(kernel.doubled(x), x + x)
    print(f"ran on {torch.cuda.get_device_name()}")
