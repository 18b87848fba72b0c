#include "cli/diff/trace_diff.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

format::Tensor TensorOf(uint8_t content) {
  format::Tensor tensor;
  tensor.dtype = 7;
  tensor.count = 4;
  tensor.hash.bytes.fill(content);
  return tensor;
}

// An all-reduce that read `input` and left `result`.
void Reduce(WrittenRank& rank, uint64_t number, uint8_t input, uint8_t result) {
  format::CallEnter enter;
  enter.api = 1;
  enter.comm = 1;
  enter.comm_seq = number;
  enter.inputs.push_back(TensorOf(input));
  format::CallLeave leave;
  leave.enter_seq = rank.Add(enter);
  rank.Add(leave);
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = number;
  results.outputs.push_back(TensorOf(result));
  rank.Add(results);
}

void Show(WrittenRank& rank, const char* name, uint8_t content) {
  format::Snapshot snapshot;
  snapshot.name = name;
  snapshot.tensor = TensorOf(content);
  rank.Add(snapshot);
}

class TraceDiffTest : public ::testing::Test {
 protected:
  TraceDiffTest() {
    for (WrittenRank* rank : {&a_, &b_}) {
      rank->Begin();
      rank->Add(format::Step{17});
    }
  }
  RankDiff Diff(const DiffOptions& options = {}) {
    for (WrittenRank* rank : {&a_, &b_}) {
      rank->Add(format::ProcessExit{0, 0});
      rank->EndBatch();
    }
    const format::RankReader& a = a_.Reader();
    const format::RankReader& b = b_.Reader();
    const RankSummary summary_a = ReadRankSummary(a);
    const RankSummary summary_b = ReadRankSummary(b);
    return CompareRecordings({&a, &summary_a, {}}, {&b, &summary_b, replay_}, options);
  }

  WrittenRank a_;
  WrittenRank b_;
  std::optional<format::ReplayOrigin> replay_;  // B's
};

TEST_F(TraceDiffTest, EqualRecordingsAreCounted) {
  for (WrittenRank* rank : {&a_, &b_}) {
    Reduce(*rank, 2, 20, 21);
    Show(*rank, "loss", 3);
  }
  const RankDiff diff = Diff();
  EXPECT_FALSE(diff.first);
  EXPECT_EQ(diff.operations, 2u);  // with that of Begin
  EXPECT_EQ(diff.tensors, 3u);
  EXPECT_EQ(diff.snapshots, 1u);
}

TEST_F(TraceDiffTest, TheFirstDifferenceIsFoundAmongMany) {
  for (uint8_t i = 2; i < 9; ++i) {
    Reduce(a_, i, i, i);
    Reduce(b_, i, i < 5 ? i : static_cast<uint8_t>(100 + i), i < 5 ? i : 200);
  }
  const RankDiff diff = Diff();
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->kind, DiffKind::kInput);
  EXPECT_EQ(diff.first->what, "AllReduce #5 of comm 0");
  EXPECT_EQ(diff.first->a->step, 17u);
  EXPECT_EQ(diff.first->a->tensor->hash, TensorOf(5).hash);
  EXPECT_EQ(diff.first->b->tensor->hash, TensorOf(105).hash);
}

// WrittenRank's times are 1000 and the number of the event.
TEST_F(TraceDiffTest, SkippedStepsOfAReplayAreNotMissing) {
  const uint64_t first = 1000 + a_.Add(format::Step{18});
  Show(a_, "loss", 1);
  const uint64_t last = 1000 + a_.Add(format::Step{19});
  // At the same times as A.
  b_.Add(format::Note{"one"});
  b_.Add(format::Note{"two"});
  b_.Add(format::Step{19});
  Show(a_, "loss", 2);
  Show(b_, "loss", 2);
  replay_.emplace();
  replay_->skipped = {first, last};
  EXPECT_FALSE(Diff().first);
}

TEST_F(TraceDiffTest, EventsAfterTheEndOfAReplayAreMissingOnlyIfItWasNotAskedToEnd) {
  Reduce(a_, 2, 20, 21);
  Reduce(b_, 2, 20, 21);
  const uint64_t end = 1000 + b_.Add(format::Step{18});
  a_.Add(format::Step{18});
  Reduce(a_, 3, 20, 21);
  replay_.emplace();
  replay_->ended_ns = end;
  EXPECT_FALSE(Diff().first);
}

TEST_F(TraceDiffTest, AReplayThatEndsTooEarlyDiffers) {
  Reduce(a_, 2, 20, 21);
  replay_.emplace();
  const RankDiff diff = Diff();
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->kind, DiffKind::kMissing);
  EXPECT_FALSE(diff.first->b);
}

TEST_F(TraceDiffTest, ItemsOfCheckpointsAreNotAskedOfAReplay) {
  format::Snapshot item;
  item.name = "loss";
  item.tensor = TensorOf(9);
  item.checkpoint = 1;
  a_.Add(item);
  Show(a_, "loss", 1);
  Show(b_, "loss", 1);
  replay_.emplace();
  const RankDiff diff = Diff();
  EXPECT_FALSE(diff.first);
  EXPECT_EQ(diff.snapshots, 1u);
}

// For a device's memory: after the call, as a result of the parameter that the operation reads.
TEST_F(TraceDiffTest, AnInputThatCameLikeAResultIsAnInput) {
  for (WrittenRank* rank : {&a_, &b_}) {
    format::CallEnter enter;
    enter.api = 27;  // ncclAllReduce
    enter.comm = 1;
    enter.comm_seq = 2;
    rank->Add(enter);
    format::CallResults results;
    results.comm = 1;
    results.comm_seq = 2;
    results.outputs.push_back(TensorOf(rank == &a_ ? 5 : 6));
    rank->Add(results);
    results.outputs[0].hash = TensorOf(7).hash;
    results.outputs[0].param = 1;  // recvbuff
    rank->Add(results);
  }
  const RankDiff diff = Diff();
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->kind, DiffKind::kInput);
  EXPECT_EQ(diff.tensors, 2u);
}

TEST_F(TraceDiffTest, AResultThatDiffersAfterEqualInputs) {
  Reduce(a_, 2, 1, 2);
  Reduce(b_, 2, 1, 3);
  const RankDiff diff = Diff();
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->kind, DiffKind::kResult);
  EXPECT_EQ(diff.first->tensor, "result");
}

TEST_F(TraceDiffTest, ASnapshotIsFoundByItsNameHoweverManyLieBetween) {
  Show(a_, "x", 1);
  Show(a_, "loss", 1);
  Show(b_, "loss", 2);
  Show(b_, "x", 1);
  const RankDiff diff = Diff();
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->kind, DiffKind::kSnapshot);
  EXPECT_EQ(diff.first->what, "snapshot loss (#1)");
  EXPECT_EQ(diff.snapshots, 2u);
}

TEST_F(TraceDiffTest, SnapshotsThatAreMeantToDifferAreLeftOut) {
  Show(a_, "rng", 1);
  Show(b_, "rng", 2);
  EXPECT_FALSE(Diff({false, {"rng"}}).first);
}

TEST_F(TraceDiffTest, AnOperationThatOneRankDoesNotReach) {
  Reduce(a_, 2, 1, 2);
  Reduce(a_, 3, 1, 2);
  Reduce(b_, 2, 1, 2);
  const RankDiff diff = Diff();
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->kind, DiffKind::kMissing);
  EXPECT_EQ(diff.first->what, "AllReduce #3 of comm 0");
  EXPECT_TRUE(diff.first->a);
  EXPECT_FALSE(diff.first->b);
}

TEST_F(TraceDiffTest, TwoRanksNeedNotGiveTheSame) {
  Reduce(a_, 2, 1, 7);
  Reduce(b_, 2, 2, 7);
  Reduce(a_, 3, 1, 8);
  Reduce(b_, 3, 2, 9);
  const RankDiff diff = Diff({true, {}});
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->kind, DiffKind::kResult);
  EXPECT_EQ(diff.first->what, "AllReduce #3 of comm 0");
  EXPECT_EQ(diff.operations, 2u);
}

}  // namespace
}  // namespace deja::cli
