// An OpenMP program whose threads draw random bytes, of which a sum is made in an order that the
// number of threads decides.
#include <omp.h>
#include <sys/random.h>
#include <time.h>

#include <cinttypes>
#include <cstdio>
#include <vector>

int main() {
  const int threads = omp_get_max_threads();
  std::vector<uint64_t> drawn(static_cast<size_t>(threads));
  std::vector<int64_t> times(static_cast<size_t>(threads));
  double sum = 0;
  for (int round = 0; round < 3; ++round) {
#pragma omp parallel reduction(+ : sum)
    {
      const auto self = static_cast<size_t>(omp_get_thread_num());
      uint64_t value = 0;
      if (getrandom(&value, sizeof value, 0) == sizeof value) drawn[self] = value;
      timespec now{};
      clock_gettime(CLOCK_REALTIME, &now);
      times[self] = now.tv_sec * 1000000000 + now.tv_nsec;
#pragma omp for schedule(static)
      for (int i = 0; i < 1000; ++i) sum += static_cast<double>(drawn[self] >> 40) / (i + 1);
    }
    for (int i = 0; i < threads; ++i)
      std::printf("round %d thread %d of %d: %016" PRIx64 " %" PRId64 "\n", round, i, threads,
                  drawn[static_cast<size_t>(i)], times[static_cast<size_t>(i)]);
  }
  std::printf("processors %d\n", omp_get_num_procs());
  return sum > 0 ? 0 : 1;
}
