// What one event costs the thread that appends it, with the background thread at work.
//
// Reported beside the time: CPU of the background thread per event (cpu_drain_ns), and bytes of the
// folder per event.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "benchmarks/recording/measured_log.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// An enter event as the recorder writes it for an all-reduce at level digest.
CallEnter AllReduce(uint64_t n) {
  CallEnter enter;
  enter.api = 4;
  enter.comm = 1;
  enter.comm_seq = n;
  enter.stack = 17;
  enter.args = {0x7f0012345678, 0x7f0012345678, 65536, 7, 0, 1, 0};
  Tensor tensor;
  tensor.dtype = 7;
  tensor.count = 65536;
  tensor.address = 0x7f0012345678;
  for (size_t i = 0; i < 16; ++i) tensor.hash.bytes[i] = static_cast<uint8_t>(n * 31 + i * 7);
  tensor.stats = {0, 0, -1.5 - static_cast<double>(n), 2.5, 0.125 * static_cast<double>(n), 33.0};
  enter.inputs.push_back(tensor);
  return enter;
}

// `pause`: iterations between which the producer sleeps, as a training loop would; 0: never.
void AppendEvents(benchmark::State& state) {
  MeasuredLog measured;
  if (measured.log() == nullptr) return state.SkipWithError("no log");
  EventSink* sink = measured.log()->ClaimSink(0);
  const bool large = state.range(0) != 0;
  std::byte buffer[1024];
  uint64_t n = 0;
  measured.Start();
  for (auto _ : state) {
    const EventHead head{0, n, 1000000 * n};
    size_t size;
    if (large) {
      size = EncodeEvent(head, AllReduce(n), buffer);
    } else {
      Input input;
      input.api = 1;
      input.result = static_cast<int64_t>(n * 1000);
      size = EncodeEvent(head, input, buffer);
    }
    sink->Append(std::span(buffer).first(size));
    ++n;
  }
  const double drain = measured.Finish();
  state.counters["drain_ns"] = drain * 1e9 / static_cast<double>(n);
  state.counters["bytes"] = static_cast<double>(measured.bytes()) / static_cast<double>(n);
}
BENCHMARK(AppendEvents)->ArgName("call_enter")->Arg(0)->Arg(1);

// Encoding alone, to subtract.
void EncodeOnly(benchmark::State& state) {
  std::byte buffer[1024];
  uint64_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(EncodeEvent({0, n, 1000000 * n}, AllReduce(n), buffer));
    ++n;
  }
}
BENCHMARK(EncodeOnly);

}  // namespace
}  // namespace deja::format

BENCHMARK_MAIN();
