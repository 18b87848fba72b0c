// What keeping a tensor costs: the thread that has it, and the background thread.
//
// The bytes are what gradients look like to the codec: floats with random mantissas and a narrow
// distribution of exponents. "known": the same tensor again and again.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "format/log/rank_log.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

Hash128 HashOf(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Hash128 hash;
  std::memcpy(hash.bytes.data(), canonical.digest, hash.bytes.size());
  return hash;
}

void PutPayloads(benchmark::State& state) {
  std::string dir = (std::filesystem::temp_directory_path() / "deja-bench-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) return state.SkipWithError("no directory");
  RankLogOptions options;
  options.trace_dir = dir;
  auto log = RankLog::Create(options);
  if (!log || !(*log)->BecomeRank({})) return state.SkipWithError("no log");

  const auto count = static_cast<size_t>(state.range(0)) / sizeof(float);
  const bool known = state.range(1) != 0;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.01f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  const auto bytes = std::as_bytes(std::span(values));

  uint64_t n = 0;
  const double process_before = CpuSeconds(RUSAGE_SELF);
  const double thread_before = CpuSeconds(RUSAGE_THREAD);
  for (auto _ : state) {
    if (!known) values[n % count] = static_cast<float>(n + 1) * 0.001f;
    (*log)->PutPayload(HashOf(bytes), bytes, sizeof(float));
    ++n;
  }
  (*log)->Flush();
  const double drain =
      CpuSeconds(RUSAGE_SELF) - process_before - (CpuSeconds(RUSAGE_THREAD) - thread_before);
  (*log)->Finish();
  uint64_t stored = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file()) stored += entry.file_size();
  }
  const double raw = static_cast<double>(n) * static_cast<double>(bytes.size());
  state.SetBytesProcessed(static_cast<int64_t>(raw));
  state.counters["drain_s_per_GB"] = drain * 1e9 / raw;
  state.counters["ratio"] = raw / static_cast<double>(stored);
  std::filesystem::remove_all(dir);
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
