// One or more of each family of functions that PyTorch takes from MKL, so that the linker must find what they need.
#include <mkl.h>

extern const void *const families[];
const void *const families[] = {
    // BLAS and its extensions
    reinterpret_cast<const void *>(&cblas_sgemm),
    reinterpret_cast<const void *>(&cblas_dgemm_batch),
    reinterpret_cast<const void *>(&cblas_gemm_bf16bf16f32),
    reinterpret_cast<const void *>(&cblas_sgemm_pack),
    // LAPACK
    reinterpret_cast<const void *>(&dgetrf_),
    reinterpret_cast<const void *>(&dpotri_),
    reinterpret_cast<const void *>(&dsytrf_),
    reinterpret_cast<const void *>(&dormqr_),
    reinterpret_cast<const void *>(&dgeev_),
    reinterpret_cast<const void *>(&zheevd_),
    reinterpret_cast<const void *>(&dgesdd_),
    reinterpret_cast<const void *>(&dgelsd_),
    // Fourier transforms
    reinterpret_cast<const void *>(&DftiCommitDescriptor),
    reinterpret_cast<const void *>(&DftiComputeForward),
    reinterpret_cast<const void *>(&DftiComputeBackward),
    // vector mathematics and random numbers
    reinterpret_cast<const void *>(&vdSin),
    reinterpret_cast<const void *>(&vmdLGamma),
    reinterpret_cast<const void *>(&viRngBernoulli),
    // sparse matrices
    reinterpret_cast<const void *>(&mkl_sparse_d_create_csr),
    reinterpret_cast<const void *>(&mkl_sparse_d_mm),
    reinterpret_cast<const void *>(&mkl_sparse_spmm),
    reinterpret_cast<const void *>(&mkl_sparse_d_trsm),
};
