// Thrust and CUB for the device are compiled; what is run needs no GPU.
#include <cstdio>

#include <cub/version.cuh>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <thrust/system/cpp/vector.h>

void sort_on_device(thrust::device_vector<int> &numbers) {
  thrust::sort(numbers.begin(), numbers.end());
}

int main() {
  thrust::cpp::vector<int> numbers{3, 1, 2};
  thrust::sort(numbers.begin(), numbers.end());
  std::printf("%d %d %d\n", int(numbers[0]), int(numbers[1]), int(numbers[2]));
  static_assert(THRUST_VERSION == CUB_VERSION, "Thrust and CUB are of one CCCL");
}
