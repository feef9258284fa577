// Prints the release of the headers that it was compiled with and that of the runtime that it runs with.
#include <cstdio>

__global__ void answer(int* to) { *to = 42; }

int main() {
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  std::printf("%d %d\n", CUDART_VERSION, runtime);
}
