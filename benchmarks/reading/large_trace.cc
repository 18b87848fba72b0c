// A trace of very many ranks, made by the writer that recorded processes use; and finding events in
// it. benchmarks/reading/large_trace.py runs it and the commands that read the trace.
//
//   large_trace write DIR RANKS COLLECTIVES    the trace, two ranks at a time
//   large_trace seek DIR N                     opens N times some rank and finds some operation of
//   it
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "format/log/rank_log.h"
#include "format/trace/trace.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

constexpr uint64_t kStepEvery = 100;  // collectives
constexpr uint32_t kAllReduce = 27;

class Rank {
 public:
  Rank(RankLog& log, uint32_t rank) : sink_(*log.ClaimSink(0)), random_(rank) {}

  template <typename Body>
  void Append(const Body& body) {
    time_ += 2000 + random_() % 1000;
    const EventHead head{0, seq_++, time_};
    sink_.Append(std::span(std::as_const(buffer_)).first(EncodeEvent(head, body, buffer_)));
  }
  // As the recorder writes it at level order: enter, results, leave.
  void Collective(uint64_t number) {
    Tensor tensor;
    tensor.dtype = 7;
    tensor.count = 4096 + number % 7 * 65536;
    tensor.address = 0x7f0000000000 + number % 7 * (1 << 20);
    CallEnter enter;
    enter.api = kAllReduce;
    enter.comm = 1;
    enter.comm_seq = number;
    enter.stack = static_cast<uint32_t>(1 + number % 7);
    enter.args = {tensor.address, tensor.address, tensor.count, 7, 0, 1, 1};
    enter.inputs.push_back(tensor);
    const uint64_t enter_seq = seq_;
    Append(enter);
    CallResults results;
    results.comm = 1;
    results.comm_seq = number;
    results.outputs.push_back(tensor);
    Append(results);
    CallLeave leave;
    leave.enter_seq = enter_seq;
    Append(leave);
  }

 private:
  EventSink& sink_;
  std::minstd_rand random_;
  std::byte buffer_[2048];
  uint64_t seq_ = 0;
  uint64_t time_ = 1'000'000'000;
};

Status WriteRank(const std::string& dir, uint32_t rank, uint32_t ranks, uint64_t collectives) {
  RankLogOptions options;
  options.trace_dir = dir;
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<RankLog> log, RankLog::Create(options));
  TraceHeader header;
  header.rank = rank;
  header.world_size = ranks;
  header.apis = {{kAllReduce, "ncclAllReduce"}};
  header.start_mono_ns = 1'000'000'000;
  header.process.argv = {"train"};
  DEJA_RETURN_IF_ERROR(log->BecomeRank(header));
  Rank writer(*log, rank);
  writer.Append(ThreadStart{0, "0", 4000});
  writer.Append(CommCreated{1, 0x1122334455667788, rank, ranks, 0, "world", -1});
  for (uint64_t i = 1; i <= collectives; ++i) {
    if (i % kStepEvery == 1) writer.Append(Step{i / kStepEvery});
    writer.Collective(i);
  }
  writer.Append(ProcessExit{0, 0});
  log->Finish();
  return {};
}

int Write(const std::string& dir, uint32_t ranks, uint64_t collectives) {
  if (mkdir(dir.c_str(), 0777) != 0) return std::perror(dir.c_str()), 1;
  std::atomic<uint32_t> next{0};
  std::atomic<int> failures{0};
  const auto work = [&] {
    for (uint32_t rank = next++; rank < ranks; rank = next++) {
      if (const Status written = WriteRank(dir, rank, ranks, collectives); !written) {
        std::fprintf(stderr, "%s\n", written.error().message.c_str());
        ++failures;
        return;
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  return failures == 0 ? 0 : 1;
}

// From nothing open to the event: milliseconds, or less than 0.
double Seek(const std::string& folder, uint64_t choice) {
  const auto begin = std::chrono::steady_clock::now();
  const auto reader = RankReader::Open(folder);
  if (!reader) return -1;
  uint64_t last = 0;
  for (const BatchInfo& batch : (*reader)->batches())
    for (const CommRange& range : batch.comms) last = std::max(last, range.last_seq);
  const uint64_t wanted = 1 + choice % std::max<uint64_t>(last, 1);
  const auto cursor = (*reader)->EventsFromOp(1, wanted);
  while (const Event* event = cursor->Next()) {
    const auto* enter = event->As<CallEnter>();
    if (enter == nullptr || enter->comm_seq != wanted) continue;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() * 1e3;
  }
  return -1;
}

int SeekMany(const std::string& dir, int count) {
  const auto trace = Trace::Open(dir);
  if (!trace) return 1;
  std::mt19937_64 random(1);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto& ranks = (*trace)->ranks();
    times.push_back(Seek(ranks[random() % ranks.size()].path, random()));
  }
  std::sort(times.begin(), times.end());
  if (times.front() < 0) return 1;
  std::printf("{\"median_ms\": %.2f, \"p99_ms\": %.2f, \"max_ms\": %.2f}\n",
              times[times.size() / 2], times[times.size() * 99 / 100], times.back());
  return 0;
}

}  // namespace
}  // namespace deja::format

int main(int argc, char** argv) {
  using namespace deja::format;
  if (argc == 5 && std::strcmp(argv[1], "write") == 0)
    return Write(argv[2], static_cast<uint32_t>(std::atoi(argv[3])),
                 static_cast<uint64_t>(std::atoll(argv[4])));
  if (argc == 4 && std::strcmp(argv[1], "seek") == 0) return SeekMany(argv[2], std::atoi(argv[3]));
  std::fprintf(stderr, "usage: large_trace write DIR RANKS COLLECTIVES | seek DIR N\n");
  return 2;
}
