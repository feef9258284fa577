"""Where things are in a prefix: the CUDA root, compilers, CMake, MKL, MAGMA; and whether they work."""
