#include "tests/support/expected_leaks.h"
#include "tests/unit/recorder/core/recorder_engine_fixture.h"

#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

// A recording lives as long as its process; nothing of it is ever given back.
DEJA_EXPECTED_LEAKS("leak:deja::recorder\nleak:process_facts.cc\n")

namespace deja::recorder {
namespace {

TEST_F(RecorderEngineTest, ProcessWithoutCommunicatorMakesNoLog) {
  Input(api::kLibcFamily, "seed");
  engine_->OnStep(1);
  engine_->OnNote("hello");
  int version = 0;
  Do(NcclApi::ncclGetVersion, {Word(&version)});
  engine_->OnExit(0, preload::ExitHow::kExit);
  engine_->Finish();
  EXPECT_EQ(FakeLog::made, 0);
}

TEST_F(RecorderEngineTest, EventsBeforeTheCommunicatorAreRecordedInOrder) {
  Input(api::kLibcFamily, "seed");
  engine_->OnStep(7);
  InitRank(kComm);
  EXPECT_THAT(Kinds(), ElementsAre(EventKind::kThreadStart, EventKind::kInput, EventKind::kStep,
                                   kEnter, EventKind::kCommCreated, kLeave));
  uint64_t seq = 0;
  for (const format::Event& event : log().Events()) EXPECT_EQ(event.seq, seq++);
  EXPECT_EQ(All<format::Input>().at(0).data, "seed");
}

TEST_F(RecorderEngineTest, OtherThreadsStagedEventsKeepTheirStream) {
  std::thread([&] { Input(api::kLibcFamily, "other"); }).join();
  InitRank(kComm);
  std::vector<uint32_t> threads;
  for (const format::Event& event : log().Events())
    if (event.As<format::ThreadStart>() != nullptr) threads.push_back(event.thread);
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_NE(threads.at(0), threads.at(1));
}

TEST_F(RecorderEngineTest, ThreadsThatWriteWhileTheProcessBecomesARankLoseNothing) {
  constexpr uint64_t kSteps = 3000;
  std::atomic<uint64_t> started{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (uint64_t step = 0; step < kSteps; ++step) {
        engine_->OnStep(step);
        if (step == 100) ++started;
      }
      engine_->OnThreadEnd();
    });
  while (started < 4) std::this_thread::yield();
  InitRank(kComm);
  for (std::thread& thread : threads) thread.join();
  std::map<uint32_t, uint64_t> next_seq;
  std::map<uint32_t, uint64_t> steps;
  for (const format::Event& event : log().Events()) {
    EXPECT_EQ(event.seq, next_seq[event.thread]++);
    if (const auto* step = event.As<format::Step>()) {
      EXPECT_EQ(step->step, steps[event.thread]++);
    }
  }
  EXPECT_EQ(next_seq.size(), 5u);
  for (const auto& [thread, count] : steps) EXPECT_EQ(count, kSteps);
}

TEST_F(RecorderEngineTest, RankComesFromTheCommunicatorWithoutLauncher) {
  InitRank(kComm, 8, 5);
  EXPECT_EQ(log().rank, 5u);
  EXPECT_EQ(log().world_size, 8u);
  EXPECT_GT(log().argument_count, 0u);
}

TEST_F(RecorderEngineTest, LaunchersVariablesSayTheRank) {
  setenv("RANK", "11", 1);
  setenv("WORLD_SIZE", "16", 1);
  InitRank(kComm, 4, 3);
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  EXPECT_EQ(log().rank, 11u);
  EXPECT_EQ(log().world_size, 16u);
}

TEST_F(RecorderEngineTest, EnterIsThereBeforeTheRealCall) {
  InitRank(kComm);
  std::vector<EventKind> seen;
  TestCall call(NcclApi::ncclAllReduce,
                {Word(send_), Word(receive_), 4, ncclFloat32, ncclSum, kComm, 0}, [&] {
                  seen = Kinds(kAfterInit);
                  return ncclSuccess;
                });
  engine_->OnNcclCall(call);
  EXPECT_THAT(seen, ElementsAre(kEnter));
  EXPECT_THAT(Kinds(kAfterInit), ElementsAre(kEnter, kResults, kLeave));
}

TEST_F(RecorderEngineTest, InitThatHangsIsARankAlready) {
  TestCall call(NcclApi::ncclCommInitRank, {Word(&slot_), 4, Word(&id_), 1}, [&] {
    EXPECT_EQ(log().rank_count, 1);
    EXPECT_EQ(Kinds().back(), kEnter);
    return ncclSystemError;
  });
  engine_->OnNcclCall(call);
  EXPECT_THAT(All<format::CommCreated>(), IsEmpty());
  EXPECT_EQ(All<format::CallLeave>().at(0).result, ncclSystemError);
}

TEST_F(RecorderEngineTest, OperationsCountPerCommunicator) {
  InitRank(kComm);
  InitRank(0x2000);
  AllReduce(kComm);
  AllReduce(0x2000);
  AllReduce(kComm);
  std::vector<std::pair<uint32_t, uint64_t>> order;
  for (const auto& enter : All<format::CallEnter>())
    if (enter.comm_seq != 0) order.emplace_back(enter.comm, enter.comm_seq);
  EXPECT_THAT(order, ElementsAre(std::pair(1u, 1ul), std::pair(2u, 1ul), std::pair(1u, 2ul)));
}

TEST_F(RecorderEngineTest, FullKeepsOutputsAndDigestsInputs) {
  InitRank(kComm);
  AllReduce(kComm);
  auto enter = All<format::CallEnter>().back();
  ASSERT_EQ(enter.inputs.size(), 1u);
  EXPECT_EQ(enter.inputs[0].count, 4u);
  EXPECT_EQ(enter.inputs[0].stats.sum, 10);
  EXPECT_EQ(enter.inputs[0].payload, 0u);
  auto results = All<format::CallResults>().back();
  ASSERT_EQ(results.outputs.size(), 1u);
  EXPECT_EQ(results.outputs[0].param, 1u);
  EXPECT_EQ(results.outputs[0].stats.max, 40);
  EXPECT_EQ(results.outputs[0].payload, 1u);
  EXPECT_EQ(log().payloads.at(results.outputs[0].hash),
            std::string(reinterpret_cast<char*>(receive_), sizeof receive_));
}

TEST_F(RecorderEngineTest, DroppedPayloadIsMarked) {
  InitRank(kComm);
  log().drop_payloads = true;
  AllReduce(kComm);
  EXPECT_EQ(All<format::CallResults>().back().outputs[0].payload, 2u);
}

TEST_F(RecorderEngineTest, DigestKeepsNoPayload) {
  Use(Level::kDigest);
  InitRank(kComm);
  AllReduce(kComm);
  auto results = All<format::CallResults>().back();
  EXPECT_FALSE(results.outputs[0].hash.IsZero());
  EXPECT_EQ(results.outputs[0].payload, 0u);
  EXPECT_THAT(log().payloads, IsEmpty());
}

TEST_F(RecorderEngineTest, OrderDoesNotReadTensors) {
  Use(Level::kOrder);
  InitRank(kComm);
  auto* nowhere = reinterpret_cast<float*>(0x10);  // reading it would crash
  Do(NcclApi::ncclAllReduce, {Word(nowhere), Word(nowhere), 4, ncclFloat32, ncclSum, kComm, 0});
  EXPECT_TRUE(All<format::CallEnter>().back().inputs[0].hash.IsZero());
  EXPECT_EQ(log().level, 0u);
}

TEST_F(RecorderEngineTest, GroupWritesResultsAtItsEnd) {
  InitRank(kComm);
  Do(NcclApi::ncclGroupStart, {});
  AllReduce(kComm);
  AllReduce(kComm);
  Do(NcclApi::ncclGroupEnd, {});
  EXPECT_THAT(Kinds(kAfterInit), ElementsAre(kEnter, kLeave, kEnter, kLeave, kEnter, kLeave, kEnter,
                                             kResults, kResults, kLeave));
  auto enters = All<format::CallEnter>();
  EXPECT_EQ(enters.at(2).group_depth, 1u);
  EXPECT_EQ(enters.at(1).group_depth, 0u);
}

TEST_F(RecorderEngineTest, InnerGroupEndWaitsForTheOuter) {
  InitRank(kComm);
  Do(NcclApi::ncclGroupStart, {});
  Do(NcclApi::ncclGroupStart, {});
  AllReduce(kComm);
  Do(NcclApi::ncclGroupEnd, {});
  EXPECT_THAT(All<format::CallResults>(), IsEmpty());
  Do(NcclApi::ncclGroupEnd, {});
  EXPECT_EQ(All<format::CallResults>().size(), 1u);
}

TEST_F(RecorderEngineTest, FailedGroupHasNoResults) {
  InitRank(kComm);
  Do(NcclApi::ncclGroupStart, {});
  AllReduce(kComm);
  Do(NcclApi::ncclGroupEnd, {}, ncclRemoteError);
  Do(NcclApi::ncclGroupStart, {});
  Do(NcclApi::ncclGroupEnd, {});
  EXPECT_THAT(All<format::CallResults>(), IsEmpty());
}

TEST_F(RecorderEngineTest, ResultsWaitUntilACommunicatorThatDoesNotBlockIsDone) {
  InitRank(kComm);
  AllReduce(kComm, ncclInProgress);
  ncclResult_t state = ncclInProgress;
  Do(NcclApi::ncclCommGetAsyncError, {kComm, Word(&state)});
  EXPECT_THAT(All<format::CallResults>(), IsEmpty());
  state = ncclSuccess;
  Do(NcclApi::ncclCommGetAsyncError, {kComm, Word(&state)});
  Do(NcclApi::ncclCommGetAsyncError, {kComm, Word(&state)});
  EXPECT_EQ(All<format::CallResults>().size(), 1u);
}

TEST_F(RecorderEngineTest, GroupInProgressIsDoneLater) {
  InitRank(kComm);
  Do(NcclApi::ncclGroupStart, {});
  AllReduce(kComm, ncclInProgress);
  Do(NcclApi::ncclGroupEnd, {}, ncclInProgress);
  EXPECT_THAT(All<format::CallResults>(), IsEmpty());
  ncclResult_t state = ncclSuccess;
  Do(NcclApi::ncclCommGetAsyncError, {kComm, Word(&state)});
  EXPECT_EQ(All<format::CallResults>().size(), 1u);
}

TEST_F(RecorderEngineTest, AsyncErrorIsRecordedOnce) {
  InitRank(kComm);
  AllReduce(kComm, ncclInProgress);
  ncclResult_t state = ncclRemoteError;
  for (int i = 0; i < 3; ++i) Do(NcclApi::ncclCommGetAsyncError, {kComm, Word(&state)});
  auto errors = All<format::AsyncError>();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].result, ncclRemoteError);
  EXPECT_THAT(All<format::CallResults>(), IsEmpty());
}

TEST_F(RecorderEngineTest, AnOperationUnderWayIsAbortedWithItsCommunicator) {
  InitRank(kComm);
  AllReduce(kComm, ncclInProgress);
  Do(NcclApi::ncclCommAbort, {kComm});
  const auto given_up = All<format::AsyncError>();
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up[0].given_up_by, static_cast<uint32_t>(NcclApi::ncclCommAbort) + 1);
  EXPECT_EQ(given_up[0].under_way, 1u);
  const auto results = All<format::CallResults>();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outputs[0].payload, static_cast<uint32_t>(format::PayloadState::kAborted));
  EXPECT_TRUE(results[0].outputs[0].hash.IsZero());
}

TEST_F(RecorderEngineTest, AnAbortThatFailsGivesNothingUp) {
  InitRank(kComm);
  AllReduce(kComm);
  Do(NcclApi::ncclCommAbort, {kComm}, ncclInvalidUsage);
  AllReduce(kComm);
  for (const auto& results : All<format::CallResults>())
    EXPECT_FALSE(results.outputs[0].hash.IsZero());
  EXPECT_EQ(All<format::CallResults>().size(), 2u);
}

TEST_F(RecorderEngineTest, FailedCallHasNoResults) {
  InitRank(kComm);
  AllReduce(kComm, ncclInvalidArgument);
  EXPECT_THAT(Kinds(kAfterInit), ElementsAre(kEnter, kLeave));
  EXPECT_EQ(All<format::CallLeave>().back().result, ncclInvalidArgument);
}

TEST_F(RecorderEngineTest, NullBuffersAndNonsenseArgumentsAreForwarded) {
  InitRank(kComm);
  Do(NcclApi::ncclAllReduce, {0, 0, 4, ncclFloat32, ncclSum, kComm, 0}, ncclInvalidArgument);
  Do(NcclApi::ncclAllReduce, {Word(send_), Word(receive_), 4, 77, ncclSum, kComm, 0},
     ncclInvalidArgument);
  Do(NcclApi::ncclAllReduce, {Word(send_), Word(receive_), ~0ull, ncclFloat32, ncclSum, kComm, 0},
     ncclInvalidArgument);
  Do(NcclApi::ncclAllReduce, {Word(send_), Word(receive_), 4, ncclFloat32, ncclSum, 0x999, 0},
     ncclInvalidArgument);
  EXPECT_EQ(All<format::CallLeave>().size(), 5u);
}

TEST_F(RecorderEngineTest, DestroyedHandleMayComeAgain) {
  InitRank(kComm);
  Do(NcclApi::ncclCommDestroy, {kComm});
  InitRank(kComm);
  AllReduce(kComm);
  auto created = All<format::CommCreated>();
  ASSERT_EQ(created.size(), 2u);
  EXPECT_EQ(created[1].comm, 2u);
  EXPECT_EQ(All<format::CallEnter>().back().comm, 2u);
  EXPECT_EQ(All<format::CallEnter>().back().comm_seq, 1u);
}

TEST_F(RecorderEngineTest, SameIdGivesTheSameHash) {
  id_.internal[5] = 1;
  InitRank(kComm, 4, 0);
  InitRank(0x2000, 4, 3);
  id_.internal[5] = 2;
  InitRank(0x3000, 4, 3);
  auto created = All<format::CommCreated>();
  EXPECT_EQ(created[0].hash, created[1].hash);
  EXPECT_NE(created[0].hash, created[2].hash);
}

TEST_F(RecorderEngineTest, StreamsAreDefinedOnceAndNumbered) {
  InitRank(kComm);
  for (uint64_t stream : {0x77ul, 0ul, 0x88ul, 0x77ul})
    Do(NcclApi::ncclAllReduce,
       {Word(send_), Word(receive_), 4, ncclFloat32, ncclSum, kComm, stream});
  std::vector<uint64_t> streams;
  for (const auto& enter : All<format::CallEnter>())
    if (enter.comm_seq != 0) streams.push_back(enter.args[6]);
  EXPECT_THAT(streams, ElementsAre(1, 0, 2, 1));
  EXPECT_EQ(All<format::HandleDefined>().size(), 2u);
}

TEST_F(RecorderEngineTest, UniqueIdGoesIntoTheBlob) {
  TestCall call(NcclApi::ncclGetUniqueId, {Word(&id_)}, [&] {
    std::memset(&id_, 'x', sizeof id_);
    return ncclSuccess;
  });
  engine_->OnNcclCall(call);
  InitRank(kComm);
  EXPECT_EQ(All<format::CallLeave>().at(0).blob, std::string(128, 'x'));
  EXPECT_EQ(All<format::CallEnter>().at(1).blob, std::string(128, 'x'));
}

TEST_F(RecorderEngineTest, LargeInputsBecomePayloads) {
  InitRank(kComm);
  std::string large(5000, 'y');
  Input(api::kLibcFamily, large);
  auto input = All<format::Input>().back();
  EXPECT_EQ(input.data, "");
  EXPECT_EQ(log().payloads.at(input.hash), large);
}

TEST_F(RecorderEngineTest, ErrnoIsTheRealCalls) {
  TestCall call(NcclApi::ncclCommInitRank, {Word(&slot_), 4, Word(&id_), 1}, [&] {
    errno = EPROTO;
    slot_ = kComm;
    return ncclSuccess;
  });
  engine_->OnNcclCall(call);
  EXPECT_EQ(errno, EPROTO);
}

}  // namespace
}  // namespace deja::recorder
