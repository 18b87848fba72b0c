// The map: from a recording, written event by event, to a summary.
#include "check/evidence/summarize.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "api/c10d_table.h"
#include "api/nccl_table.h"
#include "format/log/rank_writer.h"
#include "format/wire/format_version.h"
#include "format/wire/message_codec.h"
#include "tests/support/sample_trace.h"
#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

class NoPlaces : public PlaceFinder {
 public:
  Site Find(const std::vector<CodeAddress>& stack, bool) override {
    Site site;
    for (const CodeAddress& address : stack)
      site.push_back({address.module, static_cast<int>(address.offset), ""});
    return site;
  }
};

class Recording {
 public:
  explicit Recording(uint32_t level = 1) {
    writer_ = std::move(*format::RankWriter::Create(folder_, {}));
    format::TraceHeader header;
    header.format_major = format::kFormatMajor;
    header.format_minor = format::kFormatMinor;
    header.producer = "test";
    header.job_id = "0123456789abcdef";
    header.world_size = 2;
    header.level = level;
    header.process.pid = 77;
    header.start_wall_ns = 5000;
    header.start_mono_ns = 1000;
    header.apis = {{27, "ncclAllReduce"}, {2, "ncclCommInitRank"}};
    EXPECT_TRUE(writer_->SetHeader(header));
    format::CommCreated created;
    created.comm = 1;
    created.hash = 0xabc;
    created.nranks = 2;
    Add(created);
  }
  template <typename Body>
  uint64_t Add(const Body& body) {
    const uint64_t seq = seq_++;
    const std::string encoded =
        format::EncodeEventToString(format::EventHead{0, seq, 1000 + seq}, body);
    writer_->AddEvent(format::AsBytes(encoded));
    return seq;
  }
  uint64_t Enter(uint64_t number, uint64_t count, uint32_t stack = 0) {
    format::CallEnter enter;
    enter.api = static_cast<uint32_t>(api::NcclApi::ncclAllReduce);
    enter.comm = 1;
    enter.comm_seq = number;
    enter.stack = stack;
    for (const uint64_t arg :
         {uint64_t{1}, uint64_t{2}, count, uint64_t{7}, uint64_t{0}, uint64_t{1}, uint64_t{0}})
      enter.args.push_back(arg);
    return Add(enter);
  }
  void Leave(uint64_t enter_seq, int64_t result = 0) {
    format::CallLeave leave;
    leave.enter_seq = enter_seq;
    leave.result = result;
    Add(leave);
  }
  void EndBatch() { EXPECT_TRUE(writer_->WriteBatch()); }
  RankSummary Summary(const format::Footer& footer = {}) {
    EndBatch();
    EXPECT_TRUE(writer_->Finish(footer));
    return Read({});
  }
  // After Summary().
  [[nodiscard]] RankSummary Read(const SummarizeOptions& options) const {
    auto reader = format::RankReader::Open(folder_);
    EXPECT_TRUE(reader);
    NoPlaces places;
    return Summarize(**reader, places, options);
  }

 private:
  format::samples::ScratchFolder scratch_;
  std::string folder_ = scratch_.path() + "/rank-00000";
  std::unique_ptr<format::RankWriter> writer_;
  uint64_t seq_ = 0;
};

TEST(SummarizeTest, KeepsCollectivesWithPlacesAndSteps) {
  Recording recording;
  recording.Add(format::ModuleLoaded{3, "train", "", 0, 0});
  format::StackDefined stack;
  stack.stack = 9;
  stack.frames.push_back({3, 81});
  recording.Add(stack);
  recording.Add(format::Step{17});
  recording.Leave(recording.Enter(1, 64, 9));
  recording.EndBatch();
  recording.Enter(2, 32, 9);
  const RankSummary summary = recording.Summary();
  ASSERT_EQ(summary.comms.size(), 1u);
  const CallList& calls = summary.comms[0].collectives;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(Describe(summary.signatures[calls[0].signature]), "AllReduce float32[64] sum");
  EXPECT_EQ(calls[0].step, 17u);
  ASSERT_EQ(summary.sites[calls[0].site].size(), 1u);
  EXPECT_EQ(summary.sites[calls[0].site][0].line, 81);
  EXPECT_TRUE(calls[0].Is(kDone));
  EXPECT_FALSE(calls[1].Is(kDone));
  EXPECT_EQ(summary.last_call, "AllReduce #2 of comm 0");
  ASSERT_EQ(summary.open.size(), 1u);
  EXPECT_EQ(summary.open[0].name, "AllReduce");
  // The process's own clock was at 1000 when it was 5000.
  EXPECT_EQ(calls[0].time_ns, 5004u);
}

TEST(SummarizeTest, HeadsHaveCommunicatorsAndTheEndAsTheWholeHas) {
  Recording recording;
  recording.EndBatch();
  recording.Leave(recording.Enter(1, 64));
  recording.EndBatch();
  recording.Add(format::Note{"exception ValueError: no; train.py:8 in step"});
  recording.Add(format::ProcessExit{1, 0});
  recording.EndBatch();
  recording.Leave(recording.Enter(2, 64));
  const RankSummary whole = recording.Summary();
  SummarizeOptions options;
  options.only_heads = true;
  const RankSummary heads = recording.Read(options);
  ASSERT_EQ(whole.comms.size(), 1u);
  ASSERT_EQ(heads.comms.size(), 1u);
  EXPECT_EQ(heads.comms[0].hash, whole.comms[0].hash);
  EXPECT_EQ(whole.comms[0].collectives.size(), 2u);
  EXPECT_EQ(heads.comms[0].collectives.size(), 0u);
  EXPECT_EQ(heads.end.Describe(), "exit 1, ValueError: no");
  EXPECT_EQ(heads.end.Describe(), whole.end.Describe());
  EXPECT_EQ(heads.last_time_ns, whole.last_time_ns);
}

TEST(SummarizeTest, KeepsDigestsAndNans) {
  Recording recording;
  const uint64_t enter = recording.Enter(1, 64);
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = 1;
  format::Tensor tensor;
  tensor.param = 1;
  tensor.hash.bytes[0] = 5;
  tensor.stats.nan_count = 2;
  results.outputs.push_back(tensor);
  recording.Add(results);
  recording.Leave(enter);
  const RankSummary summary = recording.Summary();
  const Call& call = summary.comms.at(0).collectives.Own().at(0);
  EXPECT_NE(call.output, 0u);
  EXPECT_TRUE(call.Is(kNanOut));
  EXPECT_FALSE(call.Is(kNanIn));
}

// The thread that copies device buffers may write its batch first. What was read is no result.
TEST(SummarizeTest, ResultsInFrontOfTheirCall) {
  Recording recording;
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = 1;
  format::Tensor tensor;
  tensor.hash.bytes[0] = 7;
  tensor.stats.nan_count = 2;
  results.outputs.push_back(tensor);
  recording.Add(results);
  recording.EndBatch();
  recording.Enter(1, 64);
  const RankSummary summary = recording.Summary();
  const Call& call = summary.comms.at(0).collectives.Own().at(0);
  EXPECT_NE(call.input, 0u);
  EXPECT_EQ(call.output, 0u);
  EXPECT_TRUE(call.Is(kNanIn));
  EXPECT_FALSE(call.Is(kNanOut));
}

TEST(SummarizeTest, ACallThatReturnsAnErrorHasFailed) {
  Recording recording;
  recording.Leave(recording.Enter(1, 64), 6);
  EXPECT_TRUE(recording.Summary().comms.at(0).collectives.Own().at(0).Is(kFailed));
}

// Operations of torch return before they are done.
TEST(SummarizeTest, AnOperationOfTorchIsDoneWithItsResults) {
  Recording recording;
  format::CallEnter enter;
  enter.api = static_cast<uint32_t>(api::C10dApi::c10d_barrier);
  enter.comm = 1;
  for (const uint64_t number : {1, 2}) {
    enter.comm_seq = number;
    recording.Leave(recording.Add(enter));
  }
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = 1;
  recording.Add(results);
  const RankSummary summary = recording.Summary();
  EXPECT_TRUE(summary.comms.at(0).collectives.Own().at(0).Is(kDone));
  EXPECT_FALSE(summary.comms.at(0).collectives.Own().at(1).Is(kDone));
}

TEST(SummarizeTest, ASignalOfALaunchersIsNoCrash) {
  Recording recording;
  format::Crash crash;
  crash.signal = SIGTERM;
  crash.sender_pid = 4711;
  recording.Add(crash);
  EXPECT_EQ(recording.Summary().end.kind, EndKind::kEnded);
  Recording own;
  crash.signal = SIGABRT;
  crash.sender_pid = 77;
  own.Add(crash);
  EXPECT_EQ(own.Summary().end.kind, EndKind::kSignal);
}

TEST(SummarizeTest, AnExceptionIsReportedWithItsPlace) {
  Recording recording;
  recording.Add(
      format::Note{"exception ValueError: no; train.py:57 in main, train.py:70 in <module>"});
  recording.Add(format::ProcessExit{1, 0});
  const RankSummary summary = recording.Summary();
  EXPECT_EQ(summary.end.Describe(), "exit 1, ValueError: no");
  EXPECT_EQ(Describe(summary.sites.at(summary.end.site)), "train.py:57 in main");
}

TEST(SummarizeTest, LostEventsMakeItPartial) {
  Recording recording;
  recording.Add(format::Degraded{"the disk is full", 7, 0, 0});
  const RankSummary summary = recording.Summary();
  EXPECT_TRUE(summary.is_partial);
  EXPECT_EQ(summary.unknown, "7 events were lost: the disk is full");
}

TEST(SummarizeTest, LevelOrderHasNoDigests) {
  EXPECT_FALSE(Recording(0).Summary().has_digests);
  EXPECT_TRUE(Recording(1).Summary().has_digests);
}

}  // namespace
}  // namespace deja::check
