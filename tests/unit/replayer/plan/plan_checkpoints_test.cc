// Plans of replays that start at a checkpoint or end early, and what is read for them.
#include "replayer/plan/replay_plan.h"

#include <gtest/gtest.h>

#include "format/reader/checkpoints.h"
#include "tests/unit/replayer/fake_rank.h"
#include "tests/unit/replayer/plan/built_plan.h"

namespace deja::replayer {
namespace {

// A rank with a checkpoint in the middle: three operations before it, one of them by another
// thread, and two behind it.
void AddCheckpointed(FakeRank& rank) {
  rank.Thread(0, "0");
  rank.Thread(1, "0.1");
  rank.Add(0, format::Step{0});
  rank.Operation(0, kPlanOp, 1, 1);
  format::Input entropy;
  entropy.api = kGetRandom;
  entropy.data = "abcd";
  rank.Add(1, entropy);
  rank.Operation(1, kPlanOp, 2, 1);
  rank.Operation(0, kPlanOp, 1, 2);
  rank.Add(0, format::Step{1});
  format::Snapshot item;
  item.name = "weights";
  item.checkpoint = 1;
  item.tensor.count = 4;
  item.tensor.dtype = format::kRawBytes;
  item.tensor.hash = rank.Payload(std::vector<std::byte>(4));
  item.tensor.payload = static_cast<uint32_t>(format::PayloadState::kKept);
  item.opaque = true;
  rank.Add(0, item);
  format::Checkpoint checkpoint;
  checkpoint.number = 1;
  checkpoint.step = 1;
  checkpoint.items = 1;
  rank.Add(0, checkpoint);
  rank.Operation(0, kPlanOp, 1, 3);
  rank.Add(1, entropy);
  rank.Operation(1, kPlanOp, 2, 2);
}

TEST(ReplayPlanTest, ALateStartIsAfterAllRecordedWorkOfEveryThread) {
  FakeRank rank;
  AddCheckpointed(rank);
  const auto checkpoints = format::ReadCheckpoints(rank);
  ASSERT_EQ(checkpoints.size(), 1u);
  EXPECT_TRUE(checkpoints[0].complete()) << checkpoints[0].incomplete;
  auto plan =
      ReplayPlan::Build(rank, {KindOfTest, GivesUpInTest, api::InputKindOf}, &checkpoints[0]);
  ASSERT_TRUE(plan.has_value());
  const LateStart& start = *(*plan)->start();
  const uint32_t main = (*plan)->FindThread("0");
  const uint32_t other = (*plan)->FindThread("0.1");
  EXPECT_EQ(start.OperationsOf(1), 2u);
  EXPECT_EQ(start.OperationsOf(2), 1u);
  EXPECT_EQ(start.PositionOf(main).strict_events, 2u);
  EXPECT_EQ(start.PositionOf(main).snapshots, 0u) << "items are not compared";
  EXPECT_EQ(start.PositionOf(other).strict_events, 1u);
  EXPECT_EQ(start.PositionOf(other).entropy_events, 1u);
  EXPECT_EQ(start.PositionOf(other).entropy.at(kGetRandom), 1u);
  EXPECT_TRUE(start.GoesOn(main));
  EXPECT_TRUE(start.GoesOn(other));
  EXPECT_EQ((*plan)->threads()[main].strict_events, 3u);
  const RecordedCall& second = (*plan)->calls()[(*plan)->FindOperation(1, 2)];
  const RecordedCall& third = (*plan)->calls()[(*plan)->FindOperation(1, 3)];
  EXPECT_TRUE((*plan)->SkipsCall(second));
  EXPECT_FALSE((*plan)->SkipsCall(third));
}

// Steps of two operations each, a batch a step; a communicator and a stack come in the middle; a
// checkpoint is the last but one step.
void AddLongRun(FakeRank& rank, uint64_t steps) {
  rank.Thread(0, "0");
  uint64_t seq = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    rank.Add(0, format::Step{step});
    if (step == steps / 2) {
      const uint64_t maker = rank.Call(0, kInit);
      format::CommCreated comm;
      comm.comm = 7;
      rank.Add(0, comm);
      rank.Leave(0, maker, 0);
      rank.CutBatch();
      format::StackDefined stack;
      stack.stack = 9;
      stack.frames.push_back({1, 2});
      rank.Add(0, stack);
    }
    if (step + 2 == steps) {
      format::Checkpoint checkpoint;
      checkpoint.number = 1;
      checkpoint.step = step;
      rank.Add(0, checkpoint);
    }
    rank.Operation(0, kPlanOp, 1, ++seq);
    rank.Operation(0, kPlanOp, 1, ++seq);
    rank.CutBatch();
  }
}

TEST(ReplayPlanTest, ReadsOfALateStartDoNotGrowWithTheRun) {
  uint64_t read[2];
  for (int i : {0, 1}) {
    const uint64_t steps = i == 0 ? 40 : 4000;
    FakeRank rank;
    AddLongRun(rank, steps);
    const auto checkpoints = format::ReadCheckpoints(rank);
    ASSERT_EQ(checkpoints.size(), 1u);
    const uint64_t before = rank.events_read();
    auto built =
        ReplayPlan::Build(rank, {KindOfTest, GivesUpInTest, api::InputKindOf}, &checkpoints[0]);
    ASSERT_TRUE(built.has_value());
    read[i] = rank.events_read() - before;
    const ReplayPlan& plan = **built;
    EXPECT_EQ(plan.start()->OperationsOf(1), 2 * steps - 4);
    EXPECT_EQ(plan.LastOperation(1), 2 * steps);
    for (uint64_t seq : {uint64_t{1}, uint64_t{2}, 2 * steps - 3, 2 * steps})
      ASSERT_NE(plan.FindOperation(1, seq), kNone) << seq;
    EXPECT_EQ(plan.calls()[plan.FindOperation(1, 2 * steps - 3)].comm_seq, 2 * steps - 3);
    EXPECT_EQ(plan.FindOperation(1, steps / 2 + 3), kNone) << "no rank asks for it";
    const uint32_t main = plan.FindThread("0");
    EXPECT_EQ(plan.threads()[main].strict_events, plan.start()->PositionOf(main).strict_events + 4);
    EXPECT_NE(plan.FindComm(7), nullptr) << "defined in the middle";
    EXPECT_EQ(plan.Stack(9).size(), 1u);
    EXPECT_TRUE(plan.start()->GoesOn(main));
  }
  EXPECT_EQ(read[0], read[1]);
}

// The words and the input of operation n of communicator 1 say n. Its output, which another thread
// reports a batch later, says 2 n.
void AddOperationsInBatches(FakeRank& rank, uint64_t batches, uint64_t per_batch) {
  rank.Thread(0, "0");
  const auto tensor = [](uint32_t param, uint64_t count) {
    format::Tensor made;
    made.param = param;
    made.count = count;
    made.hash.bytes[0] = 1;
    return made;
  };
  const auto results = [&](uint64_t first) {
    for (uint64_t seq = first; seq < first + per_batch; ++seq) {
      format::CallResults made;
      made.comm = 1;
      made.comm_seq = seq;
      made.outputs.push_back(tensor(1, 2 * seq));
      rank.Add(1, made);
    }
  };
  for (uint64_t batch = 0; batch < batches; ++batch) {
    const uint64_t first = 1 + batch * per_batch;
    if (batch > 0) results(first - per_batch);
    for (uint64_t seq = first; seq < first + per_batch; ++seq) {
      format::CallEnter enter;
      enter.api = kPlanOp;
      enter.comm = 1;
      enter.comm_seq = seq;
      enter.args = {seq, seq + 1};
      enter.inputs.push_back(tensor(0, seq));
      rank.Leave(0, rank.Add(0, enter), 0);
    }
    rank.CutBatch();
  }
  results(1 + (batches - 1) * per_batch);
  rank.CutBatch();
}

TEST(ReplayPlanTest, ArgumentsAndTensorsAreThoseOfTheirCallInAnyOrder) {
  constexpr uint64_t kOperations = 200;
  FakeRank rank;
  AddOperationsInBatches(rank, 20, 10);
  const auto plan = Build(rank);
  for (uint64_t i = 0; i < kOperations; ++i) {
    const uint64_t seq = 1 + i * 77 % kOperations;
    const RecordedCall& call = plan->calls()[plan->FindOperation(1, seq)];
    EXPECT_EQ(call.index, plan->FindOperation(1, seq));
    ASSERT_EQ(plan->Words(call.args), (std::vector<uint64_t>{seq, seq + 1}));
    ASSERT_TRUE(call.hashed_input);
    ASSERT_EQ(plan->Tensors(call.inputs).size(), 1u);
    ASSERT_EQ(plan->Tensors(call.inputs)[0].count, seq);
    ASSERT_EQ(plan->ReadAt(call.index, 0)->count, seq);
    ASSERT_EQ(plan->Tensors(call.outputs).size(), 1u);
    ASSERT_EQ(plan->ProducedAt(call.index, 0)->count, 2 * seq);
    ASSERT_FALSE(plan->ProducedAt(call.index, 1).has_value());
    ASSERT_TRUE(plan->Words(call.outs).empty());
  }
}

TEST(ReplayPlanTest, ABatchIsReadOnceByAProgramThatKeepsItsOrder) {
  FakeRank rank;
  AddOperationsInBatches(rank, 40, 100);
  const auto plan = Build(rank);
  const uint64_t before = rank.events_read();
  for (uint64_t seq = 1; seq <= 4000; ++seq) {
    const RecordedCall& call = plan->calls()[plan->FindOperation(1, seq)];
    ASSERT_EQ(plan->Words(call.args)[0], seq);
    ASSERT_EQ(plan->Tensors(call.outputs)[0].count, 2 * seq);
  }
  EXPECT_LE(rank.events_read() - before, before);
}

TEST(ReplayPlanTest, EventsWellAfterTheEndOfAReplayAreNotRead) {
  FakeRank rank;
  AddLongRun(rank, 400);
  for (const PlannedEnd& end : {PlannedEnd{50, 0, 0}, PlannedEnd{{}, 1, 101}}) {
    const uint64_t before = rank.events_read();
    auto plan =
        ReplayPlan::Build(rank, {KindOfTest, GivesUpInTest, api::InputKindOf}, nullptr, end);
    ASSERT_TRUE(plan.has_value());
    EXPECT_NE((*plan)->FindOperation(1, 101), kNone);
    EXPECT_NE((*plan)->FindOperation(1, 104), kNone) << "a thread may be ahead";
    EXPECT_EQ((*plan)->FindOperation(1, 200), kNone);
    EXPECT_LT(rank.events_read() - before, 300u);
  }
  auto plan = ReplayPlan::Build(rank, {KindOfTest, GivesUpInTest, api::InputKindOf}, nullptr,
                                PlannedEnd{1000, 0, 0});
  ASSERT_TRUE(plan.has_value());
  EXPECT_NE((*plan)->FindOperation(1, 800), kNone) << "it does not come there";
}

TEST(ReplayPlanTest, FromTheStartEverythingIsRead) {
  FakeRank rank;
  AddLongRun(rank, 40);
  auto plan = ReplayPlan::Build(rank, {KindOfTest, GivesUpInTest, api::InputKindOf}, nullptr);
  ASSERT_TRUE(plan.has_value());
  for (uint64_t seq = 1; seq <= 80; ++seq) EXPECT_NE((*plan)->FindOperation(1, seq), kNone) << seq;
}

TEST(ReplayPlanTest, ACheckpointThatLacksSomethingIsNotWhole) {
  FakeRank rank;
  rank.Thread(0, "0");
  format::Snapshot item;
  item.name = "weights";
  item.checkpoint = 1;
  item.tensor.count = 4;
  item.tensor.payload = static_cast<uint32_t>(format::PayloadState::kDropped);
  format::Checkpoint checkpoint;
  checkpoint.number = 1;
  checkpoint.items = 1;
  rank.Add(0, item);
  rank.Add(0, checkpoint);
  item.checkpoint = 2;
  item.tensor.payload = static_cast<uint32_t>(format::PayloadState::kKept);
  checkpoint.number = 2;
  rank.Add(0, item);
  rank.Add(0, checkpoint);
  checkpoint.number = 3;
  checkpoint.items = 2;
  item.checkpoint = 3;
  rank.Add(0, item);
  rank.Add(0, checkpoint);
  item.checkpoint = 4;
  rank.Add(0, item);  // the process died here
  const auto checkpoints = format::ReadCheckpoints(rank);
  ASSERT_EQ(checkpoints.size(), 3u);
  EXPECT_EQ(checkpoints[0].incomplete, "'weights' was not kept while recording");
  EXPECT_EQ(checkpoints[1].incomplete, "the bytes of 'weights' are lost");
  EXPECT_EQ(checkpoints[2].incomplete, "events of it are lost");
}

// A checkpoint of two items each 10 steps, numbered from 1; the items of each second one are in
// other batches than its end.
void AddCheckpointedRun(FakeRank& rank, uint64_t steps) {
  rank.Thread(0, "0");
  rank.CutBatch();
  format::Snapshot item;
  item.tensor.payload = static_cast<uint32_t>(format::PayloadState::kKept);
  item.tensor.count = 4;
  item.tensor.hash = rank.Payload(std::vector<std::byte>(4));
  for (uint64_t step = 0; step < steps; ++step) {
    rank.Add(0, format::Step{step});
    rank.Add(0, format::Snapshot{});  // of no checkpoint
    if (step % 10 == 9) {
      format::Checkpoint checkpoint;
      checkpoint.number = step / 10 + 1;
      checkpoint.step = step;
      checkpoint.items = 2;
      item.checkpoint = checkpoint.number;
      for (const char* name : {"a", "b"}) {
        item.name = name;
        rank.Add(0, item);
        if (step % 20 == 9) rank.CutBatch();
      }
      rank.Add(0, checkpoint);
    }
    rank.Operation(0, kPlanOp, 1, step + 1);
    if (step % 3 == 0) rank.CutBatch();
  }
  rank.CutBatch();
}

TEST(CheckpointsTest, FromTheEndTheyAreTheSame) {
  FakeRank rank;
  AddCheckpointedRun(rank, 100);
  auto all = format::ReadCheckpoints(rank);
  ASSERT_EQ(all.size(), 10u);
  format::CheckpointsBackwards backwards(rank, rank.batches().size());
  for (auto expected = all.rbegin(); expected != all.rend(); ++expected) {
    const auto checkpoint = backwards.Next();
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->number, expected->number);
    EXPECT_EQ(checkpoint->step, expected->step);
    EXPECT_EQ(checkpoint->at.seq, expected->at.seq);
    EXPECT_TRUE(checkpoint->complete()) << checkpoint->incomplete;
    ASSERT_EQ(checkpoint->items.size(), 2u);
    EXPECT_EQ(checkpoint->items[0].name, "a");
    EXPECT_EQ(checkpoint->items[1].name, "b");
  }
  EXPECT_FALSE(backwards.Next());
  for (uint64_t number = 1; number <= 10; ++number) {
    const auto found = format::FindCheckpoint(rank, number);
    ASSERT_TRUE(found) << number;
    EXPECT_EQ(found->step, 10 * number - 1);
    EXPECT_EQ(found->items.size(), 2u);
  }
  EXPECT_FALSE(format::FindCheckpoint(rank, 11));
}

TEST(CheckpointsTest, TheLastOnesAreFoundWithoutReadingTheOthers) {
  uint64_t read[2];
  for (int i : {0, 1}) {
    const uint64_t steps = i == 0 ? 200 : 20'000;
    FakeRank rank;
    AddCheckpointedRun(rank, steps);
    const uint64_t before = rank.events_read();
    const auto batches = format::BatchesUpToStep(rank, steps - 5);
    ASSERT_TRUE(batches);
    format::CheckpointsBackwards backwards(rank, *batches);
    std::optional<format::RecordedCheckpoint> at = backwards.Next();
    while (at && at->step > steps - 5) at = backwards.Next();
    ASSERT_TRUE(at);
    EXPECT_EQ(at->step, steps - 11);
    read[i] = rank.events_read() - before;
    EXPECT_EQ(format::FindCheckpoint(rank, steps / 20)->number, steps / 20);
    EXPECT_LT(rank.events_read() - before - read[i], 60u);
  }
  EXPECT_LT(read[0], 30u);
  EXPECT_LT(read[1], 30u);
}

TEST(CheckpointsTest, APlanFromTheLastOneDoesNotReadThoseBefore) {
  uint64_t read[2];
  for (int i : {0, 1}) {
    FakeRank rank;
    AddCheckpointedRun(rank, i == 0 ? 200 : 2000);
    const auto checkpoints = format::ReadCheckpoints(rank);
    const uint64_t before = rank.events_read();
    auto plan =
        ReplayPlan::Build(rank, {KindOfTest, GivesUpInTest, api::InputKindOf}, &checkpoints.back());
    ASSERT_TRUE(plan.has_value());
    read[i] = rank.events_read() - before;
  }
  EXPECT_EQ(read[0], read[1]);
}

TEST(CheckpointsTest, OneThatLostAnItemDoesNotTakeThoseOfTheOneBefore) {
  FakeRank rank;
  AddCheckpointedRun(rank, 20);
  format::Checkpoint checkpoint;
  checkpoint.number = 3;
  checkpoint.step = 20;
  checkpoint.items = 1;
  rank.Add(0, checkpoint);
  rank.CutBatch();
  format::CheckpointsBackwards backwards(rank, rank.batches().size());
  EXPECT_EQ(backwards.Next()->incomplete, "events of it are lost");
  EXPECT_TRUE(backwards.Next()->complete());
  EXPECT_TRUE(backwards.Next()->complete());
  EXPECT_FALSE(backwards.Next());
}

TEST(CheckpointsTest, StepsThatGoBackFindNoPlace) {
  FakeRank rank;
  for (const uint64_t step : {0, 1, 2, 0}) rank.Add(0, format::Step{step});
  rank.CutBatch();
  EXPECT_FALSE(format::BatchesUpToStep(rank, 1));
}

}  // namespace
}  // namespace deja::replayer
