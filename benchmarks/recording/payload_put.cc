// What keeping a tensor costs: the thread that has it, and the background thread.
//
// The bytes are what gradients look like to the codec: floats with random mantissas and a narrow
// distribution of exponents. "known": the same tensor again and again.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "benchmarks/recording/measured_log.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {
namespace {

Hash128 HashOf(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Hash128 hash;
  std::memcpy(hash.bytes.data(), canonical.digest, hash.bytes.size());
  return hash;
}

void PutPayloads(benchmark::State& state) {
  MeasuredLog measured;
  if (measured.log() == nullptr) return state.SkipWithError("no log");

  const auto count = static_cast<size_t>(state.range(0)) / sizeof(float);
  const bool known = state.range(1) != 0;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.01f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  const auto bytes = std::as_bytes(std::span(values));

  uint64_t n = 0;
  measured.Start();
  for (auto _ : state) {
    if (!known) values[n % count] = static_cast<float>(n + 1) * 0.001f;
    measured.log()->PutPayload(HashOf(bytes), bytes, sizeof(float));
    ++n;
  }
  const double drain = measured.Finish();
  const double raw = static_cast<double>(n) * static_cast<double>(bytes.size());
  state.SetBytesProcessed(static_cast<int64_t>(raw));
  state.counters["drain_s_per_GB"] = drain * 1e9 / raw;
  state.counters["ratio"] = raw / static_cast<double>(measured.bytes());
}
BENCHMARK(PutPayloads)
    ->ArgNames({"bytes", "known"})
    ->Args({4 << 10, 0})
    ->Args({64 << 10, 0})
    ->Args({1 << 20, 0})
    ->Args({16 << 20, 0})
    ->Args({1 << 20, 1})
    ->UseRealTime();

}  // namespace
}  // namespace deja::format

BENCHMARK_MAIN();
