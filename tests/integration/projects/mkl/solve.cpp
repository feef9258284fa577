// Prints a product and a solution, a line each; their digits are complete.
#include <cstdio>

#include "linalg.h"

static void print(const char *name, int count, const double *numbers) {
  std::printf("%s", name);
  for (int i = 0; i < count; ++i) {
    std::printf(" %.17g", numbers[i]);
  }
  std::printf("\n");
}

int main() {
  const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  double c[4] = {};
  multiply(2, a, b, c);
  print("dgemm", 4, c);

  double m[] = {2, 1, 1, 1, 3, 2, 1, 0, 0}, x[] = {4, 5, 6};
  const int status = solve(3, m, x);
  print("dgesv", 3, x);
  return status;
}
