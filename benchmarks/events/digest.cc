// Digests of tensors against what memory gives: hash and statistics apart and together, and plain
// reading.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "digest/digest.h"

namespace {

using deja::digest::ComputeStats;
using deja::digest::DigestTensor;
using deja::digest::HashBytes;

std::vector<std::byte> Tensor(size_t bytes) {
  std::vector<std::byte> data(bytes);
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 0.02f);
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    float v = normal(rng);
    std::memcpy(&data[i], &v, 4);
  }
  return data;
}

void Finish(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_Read(benchmark::State& state) {
  std::vector<std::byte> data = Tensor(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= data.size(); i += 8) {
      uint64_t v;
      std::memcpy(&v, &data[i], 8);
      sum += v;
    }
    benchmark::DoNotOptimize(sum);
  }
  Finish(state);
}

void BM_Copy(benchmark::State& state) {
  std::vector<std::byte> data = Tensor(static_cast<size_t>(state.range(0)));
  std::vector<std::byte> to(data.size());
  for (auto _ : state) {
    std::memcpy(to.data(), data.data(), data.size());
    benchmark::ClobberMemory();
  }
  Finish(state);
}

void BM_Hash(benchmark::State& state) {
  std::vector<std::byte> data = Tensor(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(HashBytes(data));
  Finish(state);
}

void BM_Stats(benchmark::State& state, uint32_t dtype) {
  std::vector<std::byte> data = Tensor(static_cast<size_t>(state.range(0)));
  // Seen as a narrower type, a float is now and then infinite; ordinary tensors are not.
  uint32_t size = deja::digest::ElementSize(dtype);
  if (size < 4)
    for (size_t i = size - 1; i < data.size(); i += size) data[i] &= std::byte{0xbf};
  for (auto _ : state) benchmark::DoNotOptimize(ComputeStats(data, dtype));
  Finish(state);
}

void BM_StatsOfNans(benchmark::State& state, uint32_t dtype) {
  std::vector<std::byte> data(static_cast<size_t>(state.range(0)), std::byte{0xff});
  for (auto _ : state) benchmark::DoNotOptimize(ComputeStats(data, dtype));
  Finish(state);
}

void BM_Digest(benchmark::State& state, uint32_t dtype) {
  std::vector<std::byte> data = Tensor(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(DigestTensor(data, dtype));
  }
  Finish(state);
}

#define SIZES ->Arg(200 << 10)->Arg(64 << 20)
BENCHMARK(BM_Read) SIZES;
BENCHMARK(BM_Copy) SIZES;
BENCHMARK(BM_Hash) SIZES;
BENCHMARK_CAPTURE(BM_Digest, float32, 7u) SIZES;
BENCHMARK_CAPTURE(BM_Digest, bfloat16, 9u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, float32, 7u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, float64, 8u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, float16, 6u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, bfloat16, 9u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, e4m3, 10u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, e5m2, 11u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, int8, 0u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, int32, 2u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, uint32, 3u) SIZES;
BENCHMARK_CAPTURE(BM_Stats, int64, 4u) SIZES;
BENCHMARK_CAPTURE(BM_StatsOfNans, float32, 7u) SIZES;
BENCHMARK_CAPTURE(BM_StatsOfNans, bfloat16, 9u) SIZES;

}  // namespace

BENCHMARK_MAIN();
