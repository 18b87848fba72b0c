#include "replayer/plan/replay_plan.h"

#include <gtest/gtest.h>

#include "tests/unit/replayer/fake_rank.h"
#include "tests/unit/replayer/plan/built_plan.h"

namespace deja::replayer {
namespace {

TEST(ReplayPlanTest, FindsOperationsByCommunicatorAndNumber) {
  FakeRank rank;
  rank.Thread(0, "0");
  rank.Operation(0, kPlanOp, 1, 1);
  rank.Operation(0, kPlanOp, 2, 1);
  rank.Operation(0, kPlanOp, 1, 2);
  auto plan = Build(rank);
  const uint32_t second = plan->FindOperation(1, 2);
  ASSERT_NE(second, kNone);
  EXPECT_EQ(plan->calls()[second].comm_seq, 2u);
  EXPECT_TRUE(plan->calls()[second].left);
  EXPECT_NE(plan->FindOperation(2, 1), plan->FindOperation(1, 1));
  EXPECT_EQ(plan->FindOperation(1, 3), kNone);
  EXPECT_EQ(plan->FindOperation(3, 1), kNone);
  EXPECT_EQ(plan->LastOperation(1), 2u);
}

TEST(ReplayPlanTest, OperationsWithGapsAreFoundByTheirNumber) {
  FakeRank rank;
  rank.Thread(0, "0");
  rank.Operation(0, kPlanOp, 1, 5);
  rank.Operation(0, kPlanOp, 1, 9);
  auto plan = Build(rank);
  EXPECT_EQ(plan->FindOperation(1, 1), kNone);
  EXPECT_NE(plan->FindOperation(1, 9), kNone);
  EXPECT_EQ(plan->FindOperation(1, ~0ull), kNone);
}

TEST(ReplayPlanTest, ReadingsThatTheProgramHasNotSeenAreLeftOut) {
  FakeRank rank;
  rank.Thread(0, "0");
  const auto read = [&](format::ClockSource source, int64_t value) {
    format::ClockRun run;
    run.sources.push_back(static_cast<uint32_t>(source));
    run.deltas.push_back(value);
    rank.Add(0, run);
  };
  constexpr auto kMonotonic = format::ClockSource::kMonotonic;
  read(kMonotonic, 10);
  read(format::ClockSource::kPythonLock, 20);
  read(kMonotonic, 30);
  read(format::ClockSource::kUnseen, static_cast<int64_t>(kMonotonic));
  read(kMonotonic, 40);
  auto plan = Build(rank);
  ClockStream::Cursor cursor(&plan->threads()[0].clocks.at(static_cast<uint32_t>(kMonotonic)));
  EXPECT_EQ(cursor.Next(0), 10);
  EXPECT_EQ(cursor.Next(0), 40);
  EXPECT_EQ(cursor.Next(0), std::nullopt);
}

TEST(ReplayPlanTest, ACallThatWasNeverLeftSaysSo) {
  FakeRank rank;
  rank.Thread(0, "0");
  rank.Operation(0, kPlanOp, 1, 1, false);
  auto plan = Build(rank);
  EXPECT_FALSE(plan->calls()[plan->FindOperation(1, 1)].left);
  EXPECT_EQ(plan->end().kind, EndKind::kTorn);
  EXPECT_FALSE(plan->end().HappensByItself(1));
}

TEST(ReplayPlanTest, ResultsFindTheirOperationAcrossThreadsInAnyOrder) {
  FakeRank rank;
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = 1;
  format::Tensor tensor;
  tensor.count = 7;
  results.outputs.push_back(tensor);
  // The batch of the thread that learned of the results comes first in the file.
  rank.Add(1, results);
  rank.Operation(0, kPlanOp, 1, 1);
  auto plan = Build(rank);
  const RecordedCall& call = plan->calls()[plan->FindOperation(1, 1)];
  ASSERT_TRUE(call.has_results);
  EXPECT_EQ(plan->Tensors(call.outputs)[0].count, 7u);
  ASSERT_EQ(plan->served_order().size(), 1u);
}

TEST(ReplayPlanTest, ResultsOfACapturedCallAreOfItsLaunchesInOrder) {
  FakeRank rank;
  constexpr uint64_t kLaunches = 5;
  auto add = [&](uint32_t param, uint8_t hash) {
    format::CallResults results;
    results.comm = 1;
    results.comm_seq = 1;
    format::Tensor tensor;
    tensor.param = param;
    tensor.hash.bytes[0] = hash;
    results.outputs.push_back(tensor);
    rank.Add(1, results);
  };
  // The first launch's come before the enter in the file; what the second one read was not seen.
  add(0, 10);
  add(1, 20);
  format::CallEnter enter;
  enter.api = kPlanOp;
  enter.comm = 1;
  enter.comm_seq = 1;
  enter.inputs.push_back({});
  rank.Add(0, enter);
  for (uint8_t launch = 1; launch < kLaunches; ++launch) {
    add(0, launch == 1 ? 0 : 10 + launch);
    add(1, 20 + launch);
  }
  rank.Operation(0, kPlanOp, 1, 2);
  auto plan = Build(rank);
  const uint32_t call = plan->FindOperation(1, 1);
  ASSERT_NE(call, kNone);
  for (uint8_t launch = 0; launch < kLaunches; ++launch) {
    ASSERT_TRUE(plan->ReadAt(call, launch).has_value());
    ASSERT_TRUE(plan->ProducedAt(call, launch).has_value());
    EXPECT_EQ(plan->ReadAt(call, launch)->hash.bytes[0], launch == 1 ? 0 : 10 + launch);
    EXPECT_EQ(plan->ProducedAt(call, launch)->hash.bytes[0], 20 + launch);
  }
  EXPECT_FALSE(plan->ReadAt(call, kLaunches).has_value());
  EXPECT_FALSE(plan->ProducedAt(call, kLaunches).has_value());
  EXPECT_EQ(plan->launches().at(call).more(), kLaunches - 1);
  EXPECT_EQ(plan->launches().count(plan->FindOperation(1, 2)), 0u);
}

TEST(ReplayPlanTest, CommunicatorsBelongToTheCallThatMadeThem) {
  FakeRank rank;
  rank.Thread(0, "0");
  const uint64_t init = rank.Call(0, kInit);
  format::CommCreated created;
  created.comm = 1;
  created.nranks = 4;
  rank.Add(0, created);
  rank.Leave(0, init, 0);
  // Inside a group the handle comes with the group's end.
  const uint64_t grouped = rank.Call(0, kInit);
  rank.Leave(0, grouped, 0);
  const uint64_t end = rank.Call(0, kGroupEnd);
  created.comm = 2;
  rank.Add(0, created);
  rank.Leave(0, end, 0);
  auto plan = Build(rank);
  const RecordedThread& thread = plan->threads()[plan->FindThread("0")];
  ASSERT_EQ(thread.calls.size(), 2u);
  ASSERT_EQ(plan->Created(plan->calls()[thread.calls[0]].created).size(), 1u);
  EXPECT_EQ(plan->Created(plan->calls()[thread.calls[0]].created)[0].number, 1u);
  EXPECT_TRUE(plan->Created(plan->calls()[thread.calls[1]].created).empty());
  const uint32_t group_end = thread.by_api.at(kGroupEnd)[0];
  ASSERT_EQ(plan->Created(plan->calls()[group_end].created).size(), 1u);
  EXPECT_EQ(plan->Created(plan->calls()[group_end].created)[0].number, 2u);
}

TEST(ReplayPlanTest, OrderedCallsKnowWhatCameBeforeThem) {
  FakeRank rank;
  rank.Thread(0, "0");
  rank.Operation(0, kPlanOp, 1, 1);
  rank.Operation(0, kPlanOp, 1, 2);
  rank.Leave(0, rank.Call(0, kDestroy), 0);
  auto plan = Build(rank);
  const RecordedThread& thread = plan->threads()[0];
  EXPECT_EQ(plan->calls()[thread.calls[0]].ordinal, 2u);
  EXPECT_EQ(thread.strict_events, 3u);
}

TEST(ReplayPlanTest, InputsAreSortedByHowTheyAreServed) {
  FakeRank rank;
  rank.Thread(0, "0");
  format::Input input;
  input.api = kGetRandom;
  input.data = "abcd";
  rank.Add(0, input);
  input.data = "efgh";
  rank.Add(0, input);
  input = {};
  input.api = kGetPid;
  input.result = 42;
  rank.Add(0, input);
  auto plan = Build(rank);
  const auto& entropy = plan->threads()[0].entropy.at(kGetRandom);
  ASSERT_EQ(entropy.size(), 2u);
  EXPECT_EQ(plan->Bytes(plan->inputs()[entropy[1]].data), "efgh");
  EXPECT_EQ(plan->inputs()[plan->identities().at({kGetPid, 0})].result, 42);
}

TEST(ReplayPlanTest, AnExitAfterASignalIsTheEndAndAnExecThatFailedIsNot) {
  FakeRank rank;
  rank.Thread(0, "0");
  format::ProcessExit executed;
  executed.how = 2;
  rank.Add(0, executed);
  format::Crash crash;
  crash.signal = 11;
  rank.Add(0, crash);
  format::ProcessExit exit;
  exit.code = 3;
  rank.Add(0, exit);
  auto plan = Build(rank);
  EXPECT_EQ(plan->end().kind, EndKind::kExit);
  EXPECT_EQ(plan->end().exit_code, 3);
  EXPECT_TRUE(plan->threads()[plan->end().thread].ended);
}

TEST(ReplayPlanTest, ASignalFromAnotherProcessDoesNotHappenByItself) {
  FakeRank rank;
  rank.Thread(0, "0");
  format::Crash crash;
  crash.signal = 15;
  crash.sender_pid = 99;
  rank.Add(0, crash);
  auto plan = Build(rank);
  EXPECT_TRUE(plan->end().FromOutside(1234));
  EXPECT_FALSE(plan->end().HappensByItself(1234));
  // So its thread may go on to what the recording does not have.
  EXPECT_FALSE(plan->threads()[plan->end().thread].ended);
  // abort() sends it to itself.
  EXPECT_TRUE(plan->end().HappensByItself(99));
}

TEST(ReplayPlanTest, AsyncErrorsAreThereAfterTheOperationsBeforeThem) {
  FakeRank rank;
  rank.Thread(0, "0");
  rank.Operation(0, kPlanOp, 1, 1);
  rank.Operation(0, kPlanOp, 1, 2);
  rank.Add(0, format::AsyncError{1, 6});
  rank.Operation(0, kPlanOp, 1, 3);
  auto plan = Build(rank);
  EXPECT_EQ(plan->AsyncErrorAfter(1, 1), 0);
  EXPECT_EQ(plan->AsyncErrorAfter(1, 2), 6);
  EXPECT_EQ(plan->AsyncErrorAfter(2, 9), 0);
}

TEST(ReplayPlanTest, AnAbortedOperationHasNoResultAndIsNoError) {
  FakeRank rank;
  rank.Thread(0, "0");
  rank.Operation(0, kPlanOp, 1, 1);
  rank.Add(0, format::AsyncError{1, 0, kPlanOp + 1, 1});
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = 1;
  results.outputs.push_back({});
  results.outputs[0].payload = static_cast<uint32_t>(format::PayloadState::kAborted);
  rank.Add(0, results);
  auto plan = Build(rank);
  EXPECT_EQ(plan->AsyncErrorAfter(1, 1), 0);
  EXPECT_TRUE(plan->calls()[plan->FindOperation(1, 1)].aborted);
}

TEST(ReplayPlanTest, AnOperationThatAnotherThreadsAbortEndedWaitsForIt) {
  FakeRank rank;
  rank.Thread(0, "0");
  rank.Thread(1, "0.1");
  const uint64_t stuck = rank.Operation(1, kPlanOp, 1, 1, false);
  format::CallEnter abort;
  abort.api = static_cast<uint32_t>(NcclApi::ncclCommAbort);
  abort.comm = 1;
  const uint64_t aborted = rank.Add(0, abort);
  rank.Leave(1, stuck, 6);
  rank.Leave(0, aborted, 0);
  auto plan = Build(rank);
  const RecordedCall& call = plan->calls()[plan->FindOperation(1, 1)];
  ASSERT_NE(call.waits_for, kNone);
  EXPECT_EQ(plan->calls()[call.waits_for].api, abort.api);
  EXPECT_TRUE(plan->IsAwaited(call.waits_for));
}

TEST(ReplayPlanTest, ReferencesToNothingAreLeftOut) {
  FakeRank rank;
  rank.Leave(3, 12345, 0);  // of a call that is not there
  format::CallResults results;
  results.comm = 9;
  results.comm_seq = ~0ull;
  rank.Add(3, results);
  auto plan = Build(rank);
  EXPECT_TRUE(plan->calls().empty());
  EXPECT_TRUE(plan->Stack(77).empty());
  EXPECT_EQ(plan->Module(77), nullptr);
  EXPECT_EQ(plan->FindThread("0"), kNone);
  EXPECT_EQ(plan->FindComm(1), nullptr);
}

}  // namespace
}  // namespace deja::replayer
