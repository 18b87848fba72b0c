// How fast the reader decodes the tensors of a rank, without Python. python_speed.py runs it in
// turns with deja.trace.
//
//   tensor_speed DIR [RUNS]    every kept result of rank 0, one after the other, into memory of its
//                              own; and all into one buffer
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"

namespace deja::format {
namespace {

// Elapsed, and of the process's threads.
struct Times {
  double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  double processor = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
};

// Bytes that were read; 0: it failed.
uint64_t ReadAll(const RankReader& reader, bool in_one_buffer) {
  std::unique_ptr<std::byte[]> buffer;
  uint64_t room = 0;
  uint64_t bytes = 0;
  const auto cursor = reader.Events();
  while (const Event* event = cursor->NextOf(KindBit(EventKind::kCallResults))) {
    for (const Tensor& tensor : event->As<CallResults>()->outputs) {
      const uint64_t size = reader.PayloadSize(tensor.hash).value_or(0);
      if (size == 0) continue;
      if (!in_one_buffer || size > room) {
        // Not zeroed.
        buffer.reset(new std::byte[size]);
        room = size;
      }
      if (!reader.ReadPayload(tensor.hash, {buffer.get(), static_cast<size_t>(size)})) return 0;
      bytes += size;
    }
  }
  return bytes;
}

int Measure(const char* directory, int runs) {
  for (int run = 0; run < runs; ++run) {
    for (const bool in_one_buffer : {false, true}) {
      const Times begin;
      const auto trace = Trace::Open(directory);
      if (!trace) return std::fprintf(stderr, "%s\n", trace.error().message.c_str()), 1;
      const auto reader = (*trace)->Rank(0);
      if (!reader) return std::fprintf(stderr, "%s\n", reader.error().message.c_str()), 1;
      const uint64_t bytes = ReadAll(**reader, in_one_buffer);
      if (bytes == 0) return 1;
      const Times end;
      std::printf("%s %.4f %.4f %llu\n", in_one_buffer ? "one-buffer" : "own-memory",
                  end.elapsed - begin.elapsed, end.processor - begin.processor,
                  static_cast<unsigned long long>(bytes));
    }
  }
  return 0;
}

}  // namespace
}  // namespace deja::format

int main(int argc, char** argv) {
  if (argc == 2 || argc == 3)
    return deja::format::Measure(argv[1], argc == 3 ? std::max(std::atoi(argv[2]), 1) : 1);
  std::fprintf(stderr, "usage: tensor_speed DIR [RUNS]\n");
  return 2;
}
