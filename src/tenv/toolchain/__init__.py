"""Find the tools of a prefix (CUDA, compilers, CMake, MKL, MAGMA) and test them."""
