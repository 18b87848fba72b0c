// A rank's folder for tests, written event by event and batch by batch: one thread and one
// communicator. Removed with the object. One thread.
#ifndef DEJA_TESTS_UNIT_CLI_WRITTEN_RANK_H_
#define DEJA_TESTS_UNIT_CLI_WRITTEN_RANK_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cli/events/rank_summary.h"
#include "format/log/rank_writer.h"
#include "format/wire/format_version.h"
#include "format/wire/message_codec.h"
#include "tests/support/sample_trace.h"

namespace deja::cli {

class WrittenRank {
 public:
  WrittenRank() {
    writer_ = std::move(*format::RankWriter::Create(folder_, {}));
    format::TraceHeader header;
    header.format_major = format::kFormatMajor;
    header.format_minor = format::kFormatMinor;
    header.producer = "test";
    header.job_id = "0123456789abcdef";
    header.world_size = 2;
    header.apis = {{1, "ncclAllReduce"}};
    EXPECT_TRUE(writer_->SetHeader(header));
  }

  template <typename Body>
  uint64_t Add(const Body& body) {
    const uint64_t seq = seq_++;
    const std::string encoded =
        format::EncodeEventToString(format::EventHead{0, seq, 1000 + waited_ns_ + seq}, body);
    writer_->AddEvent(format::AsBytes(encoded));
    return seq;
  }
  // Events that follow are later by that.
  void Wait(std::chrono::nanoseconds time) { waited_ns_ += static_cast<uint64_t>(time.count()); }
  uint64_t Enter(uint64_t comm_seq) {
    format::CallEnter enter;
    enter.api = 1;
    enter.comm = 1;
    enter.comm_seq = comm_seq;
    return Add(enter);
  }
  void Call(uint64_t comm_seq) {
    format::CallLeave leave;
    leave.enter_seq = Enter(comm_seq);
    Add(leave);
  }
  void Begin() {
    Add(format::ThreadStart{0, "0", 4711});
    format::CommCreated created;
    created.comm = 1;
    created.nranks = 2;
    Add(created);
    Call(1);
    EndBatch();
  }
  void EndBatch() { EXPECT_TRUE(writer_->WriteBatch()); }
  // Ends it; the reader lives as long as this.
  const format::RankReader& Reader() {
    EXPECT_TRUE(writer_->Finish(format::Footer{}));
    auto reader = format::RankReader::Open(folder_);
    EXPECT_TRUE(reader);
    reader_ = std::move(*reader);
    return *reader_;
  }
  RankSummary Summary() { return ReadRankSummary(Reader()); }

 private:
  format::samples::ScratchFolder scratch_;
  std::string folder_ = scratch_.path() + "/rank-00000";
  std::unique_ptr<format::RankWriter> writer_;
  std::unique_ptr<format::RankReader> reader_;
  uint64_t seq_ = 0;
  uint64_t waited_ns_ = 0;
};

}  // namespace deja::cli

#endif  // DEJA_TESTS_UNIT_CLI_WRITTEN_RANK_H_
