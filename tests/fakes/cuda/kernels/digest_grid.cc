#include "tests/fakes/cuda/kernels/digest_grid.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace cusim {
namespace {

using namespace deja::digest::gpu;

template <typename T>
void RunWarp(const Work& work, uint64_t first, uint64_t threads, std::mt19937_64& random) {
  std::array<uint32_t, kWarp> order;
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::array<Record, kWarp> records;
  for (uint32_t lane : order) records[lane] = RunThread<T>(work, first + lane, threads);
  for (uint32_t distance = kWarp / 2; distance != 0; distance /= 2)
    for (uint32_t lane = 0; lane < distance; ++lane) Merge(records[lane], records[lane + distance]);
  if (unsigned char* to = RecordOf(work, first)) std::memcpy(to, &records[0], sizeof records[0]);
}

template <typename T>
void RunGrid(const Work& work, uint32_t thread_blocks) {
  static std::atomic<uint64_t> launches{0};
  std::mt19937_64 random(++launches);
  const uint64_t threads = uint64_t{thread_blocks} * kThreads;
  std::vector<uint64_t> warps(threads / kWarp);
  std::iota(warps.begin(), warps.end(), 0);
  std::shuffle(warps.begin(), warps.end(), random);
  for (uint64_t warp : warps) RunWarp<T>(work, warp * kWarp, threads, random);
}

}  // namespace

void RunDigestGrid(uint32_t kernel, const Work& work, uint32_t thread_blocks) {
#define DEJA_RUN(name, type, number) \
  if (kernel == (number)) return RunGrid<type>(work, thread_blocks);
  DEJA_DIGEST_KERNELS(DEJA_RUN)
#undef DEJA_RUN
  std::abort();
}

}  // namespace cusim
