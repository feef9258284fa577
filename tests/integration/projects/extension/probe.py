"""Print, as JSON, where a CUDA build of PyTorch would look for CUDA to compile an extension with."""

import json
import sys
from importlib import import_module

torch = import_module("torch")
# The wheel may be the one without CUDA. What is asked of the module below is decided when it is imported, by these.
torch.version.cuda = "13.0"
torch.cuda._is_compiled = lambda: True
torch.cuda.is_available = lambda: False
extension = import_module("torch.utils.cpp_extension")

extension._check_cuda_version("g++", extension.TorchVersion("11.4"))  # raises where nvcc is of another CUDA
answers = {
    "torch": torch.__version__,
    "home": extension.CUDA_HOME,
    "includes": extension.include_paths("cuda"),
    "libraries": extension.library_paths("cuda"),
    "flags": extension._get_cuda_arch_flags(),
}
json.dump(answers, sys.stdout)
