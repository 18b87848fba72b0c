// Writes the recording of a job of very many ranks, through the real writer: how `deja check` is
// measured.
//
//     zoo_many_ranks FOLDER RANKS COLLECTIVES [FAULTY-RANK]
//
// All ranks all-reduce three buckets a step. FAULTY-RANK leaves one collective out, half-way.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "api/nccl_table.h"
#include "format/log/rank_writer.h"
#include "format/wire/format_version.h"
#include "format/wire/message_codec.h"

namespace {

using namespace deja;

constexpr uint64_t kBuckets = 3;
constexpr uint64_t kEventsOfBatch = 4096;
constexpr uint64_t kStartNs = 1'000'000'000;
constexpr uint64_t kOperationNs = 8'000'000;
constexpr uint32_t kLateRank = 5;
constexpr uint64_t kLateNs = 400'000;

class Rank {
 public:
  Rank(const std::string& folder, uint32_t rank, uint32_t ranks) : rank_(rank) {
    auto writer = format::RankWriter::Create(folder, {});
    if (!writer) {
      std::fprintf(stderr, "%s\n", writer.error().message.c_str());
      std::exit(1);
    }
    writer_ = std::move(*writer);
    format::TraceHeader header;
    header.format_major = format::kFormatMajor;
    header.format_minor = format::kFormatMinor;
    header.producer = "zoo_many_ranks";
    header.job_id = "0123456789abcdef";
    header.rank = rank;
    header.world_size = ranks;
    header.level = 1;
    header.start_wall_ns = header.start_mono_ns = 1'000'000'000;
    header.apis = {{static_cast<uint32_t>(api::NcclApi::ncclAllReduce), "ncclAllReduce"}};
    if (!writer_->SetHeader(header)) std::exit(1);
    format::CommCreated created;
    created.comm = 1;
    created.hash = 0xabc;
    created.rank = rank;
    created.nranks = ranks;
    Add(created);
    for (uint32_t module = 1; module <= kBuckets; ++module) {
      const std::string path = "python:reduce:/train/bucket_" + std::to_string(module) + ".py";
      Add(format::ModuleLoaded{module, path, "", 0, 0});
      format::StackDefined stack;
      stack.stack = module;
      stack.frames.push_back({module, 10});
      Add(stack);
    }
  }

  void AllReduce(uint64_t bucket, uint64_t result) {
    format::CallEnter enter;
    enter.api = static_cast<uint32_t>(api::NcclApi::ncclAllReduce);
    enter.comm = 1;
    enter.comm_seq = ++operations_;
    enter.stack = static_cast<uint32_t>(bucket + 1);
    for (const uint64_t arg : {uint64_t{1}, uint64_t{2}, 1000 * (bucket + 1), uint64_t{7},
                               uint64_t{0}, uint64_t{1}, uint64_t{0}})
      enter.args.push_back(arg);
    enter.inputs.push_back(Tensor(result * 1024 + rank_ + 1, 0));
    // Ranks enter within two milliseconds, one of them always late, and leave together.
    now_ns_ = kStartNs + result * kOperationNs;
    const uint64_t start_ns = now_ns_;
    now_ns_ += (rank_ * 7919 + result * 104'729) % 1500 * 1000;
    if (rank_ == kLateRank) now_ns_ += kLateNs;
    format::CallLeave leave;
    leave.enter_seq = Add(enter);
    now_ns_ = start_ns + 2'000'000 + (bucket + 1) * 1'000'000;
    format::CallResults results;
    results.comm = 1;
    results.comm_seq = operations_;
    results.outputs.push_back(Tensor(result + 1, 1));
    Add(results);
    Add(leave);
  }
  void Step(uint64_t step) {
    now_ns_ = kStartNs + step * kBuckets * kOperationNs;
    Add(format::Step{step});
  }
  void Finish() {
    Add(format::ProcessExit{0, 0});
    if (!writer_->WriteBatch() || !writer_->Finish(format::Footer{})) std::exit(1);
  }

 private:
  static format::Tensor Tensor(uint64_t content, uint32_t param) {
    format::Tensor tensor;
    tensor.param = param;
    tensor.dtype = 7;
    tensor.count = 1000;
    tensor.stats.sum_squares = 1e4 / static_cast<double>(1 + content % 4096);
    for (size_t i = 0; i < 8; ++i)
      tensor.hash.bytes[i] = static_cast<uint8_t>((content * 0x9e3779b97f4a7c15u) >> (8 * i));
    return tensor;
  }
  template <typename Body>
  uint64_t Add(const Body& body) {
    const uint64_t seq = seq_++;
    const std::string encoded =
        format::EncodeEventToString(format::EventHead{0, seq, now_ns_}, body);
    writer_->AddEvent(format::AsBytes(encoded));
    if (seq_ % kEventsOfBatch == 0 && !writer_->WriteBatch()) std::exit(1);
    return seq;
  }

  std::unique_ptr<format::RankWriter> writer_;
  uint32_t rank_ = 0;
  uint64_t seq_ = 0;
  uint64_t operations_ = 0;
  uint64_t now_ns_ = kStartNs;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: zoo_many_ranks FOLDER RANKS COLLECTIVES [FAULTY-RANK]\n");
    return 2;
  }
  const auto ranks = static_cast<uint32_t>(std::atoi(argv[2]));
  const auto collectives = static_cast<uint64_t>(std::atoll(argv[3]));
  const long faulty = argc > 4 ? std::atol(argv[4]) : -1;
  std::filesystem::create_directories(argv[1]);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    char name[32];
    std::snprintf(name, sizeof name, "/rank-%05u", rank);
    Rank recording(argv[1] + std::string(name), rank, ranks);
    for (uint64_t i = 0; i < collectives; ++i) {
      if (i % kBuckets == 0) recording.Step(i / kBuckets);
      if (rank == faulty && i == collectives / 2) continue;
      recording.AllReduce(i % kBuckets, i);
    }
    recording.Finish();
  }
  return 0;
}
