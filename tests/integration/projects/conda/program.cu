#include <cstdio>
#include <vector>
#include <cublas_v2.h>
#include <magma_v2.h>
#include <mkl.h>
__global__ void twice(float *x) { x[threadIdx.x] *= 2; }

int main() {
    int runtime = 0, devices = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaError_t state = cudaGetDeviceCount(&devices);
    std::printf("cudart=%d\ndevice=%s\n", runtime, cudaGetErrorName(state));
    magma_int_t major, minor, micro;
    magma_version(&major, &minor, &micro);
    std::printf("magma=%d.%d.%d\n", (int)major, (int)minor, (int)micro);
    double a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, c[4] = {};
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
    std::printf("mkl=%d\ngemm=%g,%g,%g,%g\n", INTEL_MKL_VERSION, c[0], c[1], c[2], c[3]);
    std::printf("gcc=%d.%d\n", __GNUC__, __GNUC_MINOR__);
    if (devices) {
        magma_init();
        std::vector<double> m = {4, 1, 1, 3};
        magma_int_t pivots[2], info = -1;
        magma_dgetrf(2, 2, m.data(), 2, pivots, &info);
        std::printf("lu=%d\n", (int)info);
        magma_finalize();
    }
}
