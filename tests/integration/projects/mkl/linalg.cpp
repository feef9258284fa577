#include "linalg.h"

#include <mkl.h>

void multiply(int n, const double *a, const double *b, double *c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a, n, b, n, 0.0, c, n);
}

int solve(int n, double *a, double *x) {
  MKL_INT pivots[16];
  return static_cast<int>(LAPACKE_dgesv(LAPACK_ROW_MAJOR, n, 1, a, n, pivots, x, 1));
}
