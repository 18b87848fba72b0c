#include "cli/rank_story.h"

#include <gtest/gtest.h>

#include <string>

#include "format/message_codec.h"
#include "format/rank_writer.h"
#include "tests/support/sample_trace.h"

namespace deja::cli {
namespace {

using format::Event;

// A rank's folder, batch by batch: one thread and one communicator.
class Folder {
 public:
  Folder() {
    writer_ = std::move(*format::RankWriter::Create(folder_, {}));
    format::TraceHeader header;
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
        format::EncodeEventToString(format::EventHead{0, seq, 1000 + seq}, body);
    writer_->AddEvent(format::AsBytes(encoded));
    return seq;
  }
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
  RankStory Story() {
    EXPECT_TRUE(writer_->Finish(format::Footer{}));
    auto reader = format::RankReader::Open(folder_);
    EXPECT_TRUE(reader);
    return ReadRankStory(**reader);
  }

 private:
  format::samples::ScratchFolder scratch_;
  std::string folder_ = scratch_.path() + "/rank-00000";
  std::unique_ptr<format::RankWriter> writer_;
  uint64_t seq_ = 0;
};

TEST(RankStoryTest, TheLastCallNeedNotBeInTheLastBatch) {
  Folder folder;
  folder.Begin();
  for (uint64_t i = 2; i <= 300; ++i) folder.Call(i);
  folder.EndBatch();
  folder.Add(format::Degraded{"payloads were dropped under pressure", 0, 7, 700});
  folder.Add(format::ProcessExit{1, 0});
  folder.EndBatch();
  const RankStory story = folder.Story();
  ASSERT_TRUE(story.last_call);
  EXPECT_EQ(story.last_call->Describe(), "AllReduce #300 of comm 0");
  EXPECT_TRUE(story.open_calls.empty());
  Symbolizer symbolizer;
  EXPECT_EQ(story.HowItEnded(symbolizer), "exit 1, after AllReduce #300 of comm 0");
}

TEST(RankStoryTest, ACallThatWasNeverLeftIsFoundBehindBatchesOfTheEnd) {
  Folder folder;
  folder.Begin();
  for (uint64_t i = 2; i <= 6; ++i) folder.Call(i);
  folder.Enter(7);
  folder.EndBatch();
  format::Crash crash;
  crash.signal = 15;
  folder.Add(crash);
  folder.EndBatch();
  folder.Add(format::ProcessExit{143, 0});
  folder.EndBatch();
  const RankStory story = folder.Story();
  ASSERT_EQ(story.open_calls.size(), 1u);
  EXPECT_EQ(story.open_calls[0].Describe(), "AllReduce #7 of comm 0");
  ASSERT_TRUE(story.last_call);
  EXPECT_EQ(story.last_call->comm_seq, 7u);
}

TEST(RankStoryTest, ACallThatWasLeftInALaterBatchIsNotOpen) {
  Folder folder;
  folder.Begin();
  const uint64_t enter = folder.Enter(2);
  folder.EndBatch();
  format::CallLeave leave;
  leave.enter_seq = enter;
  folder.Add(leave);
  folder.EndBatch();
  folder.Add(format::ProcessExit{0, 0});
  folder.EndBatch();
  const RankStory story = folder.Story();
  EXPECT_TRUE(story.open_calls.empty());
  ASSERT_TRUE(story.last_call);
  EXPECT_EQ(story.last_call->comm_seq, 2u);
}

}  // namespace
}  // namespace deja::cli
