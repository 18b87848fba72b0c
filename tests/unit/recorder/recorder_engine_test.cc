#include "recorder/recorder_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "include/compat/nccl.h"
#include "preload/api/nccl_table.h"
#include "preload/checkpoint_registry.h"
#include "tests/unit/recorder/fake_log.h"

#if defined(__SANITIZE_ADDRESS__)
// A recording lives as long as its process; nothing of it is ever given back.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:deja::recorder\nleak:process_facts.cc\n";
}
#endif

namespace deja::recorder {
namespace {

using format::EventKind;
using preload::Call;
using preload::NcclApi;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr EventKind kEnter = EventKind::kCallEnter;
constexpr EventKind kLeave = EventKind::kCallLeave;
constexpr EventKind kResults = EventKind::kCallResults;

// A call as a hook makes it, with a stand-in for the real function.
struct TestCall : Call {
  std::function<ncclResult_t()> real;
  TestCall(
      NcclApi api, std::initializer_list<uint64_t> words,
      std::function<ncclResult_t()> real_call = [] { return ncclSuccess; })
      : real(std::move(real_call)) {
    info = &preload::NcclInfo(api);
    size_t i = 0;
    for (uint64_t word : words) args[i++] = word;
    invoke = [](Call& call) {
      auto& self = static_cast<TestCall&>(call);
      call.result = static_cast<uint64_t>(self.real());
    };
  }
};

template <typename T>
uint64_t Word(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

class RecorderEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK",
                             "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
      unsetenv(name);
    FakeLog::Reset();
    EventWriter::ForgetThread(preload::Self());
    preload::ResetStacksInChild();
    Use(Level::kFull);
  }
  void TearDown() override { EventWriter::ForgetThread(preload::Self()); }

  void Use(Level level) {
    config_.level = level;
    engine_ = std::make_unique<RecorderEngine>(config_, &FakeLog::Create);
  }
  FakeLog& log() { return *FakeLog::last; }

  ncclResult_t Do(NcclApi api, std::initializer_list<uint64_t> words,
                  ncclResult_t result = ncclSuccess) {
    TestCall call(api, words, [result] { return result; });
    engine_->OnNcclCall(call);
    return static_cast<ncclResult_t>(call.result);
  }
  // Makes communicator `handle` of `nranks` ranks, of which this process is `rank`.
  void InitRank(uint64_t handle, int nranks = 4, int rank = 2) {
    TestCall call(
        NcclApi::ncclCommInitRank,
        {Word(&slot_), static_cast<uint64_t>(nranks), Word(&id_), static_cast<uint64_t>(rank)},
        [&] {
          slot_ = handle;
          return ncclSuccess;
        });
    engine_->OnNcclCall(call);
  }
  void AllReduce(uint64_t handle, ncclResult_t result = ncclSuccess) {
    Do(NcclApi::ncclAllReduce, {Word(send_), Word(receive_), 4, ncclFloat32, ncclSum, handle, 0},
       result);
  }
  void Input(uint32_t api, std::string_view bytes) {
    char buffer[8192];
    preload::InputCall call;
    call.api = api;
    call.out = std::span(reinterpret_cast<std::byte*>(buffer), sizeof buffer);
    call.context = &bytes;
    call.real = [](preload::InputCall& c, void* context) {
      auto text = *static_cast<std::string_view*>(context);
      std::memcpy(c.out.data(), text.data(), text.size());
      c.produced = text.size();
      c.result = static_cast<int64_t>(text.size());
    };
    engine_->OnInput(call);
  }
  // The events after the first `skip`, without the stacks and modules in between.
  std::vector<EventKind> Kinds(size_t skip = 0) {
    std::vector<EventKind> kinds;
    for (EventKind kind : log().Kinds())
      if (kind != EventKind::kStackDefined && kind != EventKind::kModuleLoaded)
        kinds.push_back(kind);
    kinds.erase(kinds.begin(),
                kinds.begin() + static_cast<ptrdiff_t>(std::min(skip, kinds.size())));
    return kinds;
  }
  template <typename T>
  std::vector<T> All() {
    std::vector<T> found;
    for (const format::Event& event : log().Events())
      if (const T* body = event.As<T>()) found.push_back(*body);
    return found;
  }

  Config config_;
  std::unique_ptr<RecorderEngine> engine_;
  uint64_t slot_ = 0;
  ncclUniqueId id_{};
  float send_[4] = {1, 2, 3, 4};
  float receive_[4] = {10, 20, 30, 40};
};

constexpr uint64_t kComm = 0x1000;
constexpr size_t kAfterInit = 4;  // ThreadStart, CallEnter, CommCreated, CallLeave

TEST_F(RecorderEngineTest, ProcessWithoutCommunicatorMakesNoLog) {
  Input(preload::kLibcFamily, "seed");
  engine_->OnStep(1);
  engine_->OnNote("hello");
  int version = 0;
  Do(NcclApi::ncclGetVersion, {Word(&version)});
  engine_->OnExit(0, preload::ExitHow::kExit);
  engine_->Finish();
  EXPECT_EQ(FakeLog::made, 0);
}

TEST_F(RecorderEngineTest, WhatCameBeforeTheCommunicatorIsRecordedInOrder) {
  Input(preload::kLibcFamily, "seed");
  engine_->OnStep(7);
  InitRank(kComm);
  EXPECT_THAT(Kinds(), ElementsAre(EventKind::kThreadStart, EventKind::kInput, EventKind::kStep,
                                   kEnter, EventKind::kCommCreated, kLeave));
  uint64_t seq = 0;
  for (const format::Event& event : log().Events()) EXPECT_EQ(event.seq, seq++);
  EXPECT_EQ(All<format::Input>().at(0).data, "seed");
}

TEST_F(RecorderEngineTest, OtherThreadsStagedEventsKeepTheirStream) {
  std::thread([&] { Input(preload::kLibcFamily, "other"); }).join();
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
  Input(preload::kLibcFamily, large);
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

TEST_F(RecorderEngineTest, FailingLogTurnsRecordingOffOnce) {
  FakeLog::create_error = "no space left on the moon";
  testing::internal::CaptureStderr();
  InitRank(kComm);
  AllReduce(kComm);
  InitRank(0x2000);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("no space left on the moon"), std::string::npos);
  EXPECT_EQ(slot_, 0x2000u) << "calls must reach the real library";
}

TEST_F(RecorderEngineTest, FailingFolderTurnsRecordingOff) {
  FakeLog::rank_error = "read-only";
  InitRank(kComm);
  size_t before = log().Events().size();
  AllReduce(kComm);
  EXPECT_EQ(log().Events().size(), before);
}

TEST_F(RecorderEngineTest, ThreadEndsItsStream) {
  InitRank(kComm);
  std::thread([&] {
    engine_->OnStep(3);
    engine_->OnThreadEnd();
    engine_->OnStep(4);  // a destructor of thread-local data
  }).join();
  EXPECT_THAT(Kinds(kAfterInit),
              ElementsAre(EventKind::kThreadStart, EventKind::kStep, EventKind::kThreadEnd));
}

TEST_F(RecorderEngineTest, ExitIsRecordedOnceAndFinishes) {
  InitRank(kComm);
  engine_->OnExit(3, preload::ExitHow::kUnderscoreExit);
  engine_->OnExit(3, preload::ExitHow::kExit);
  engine_->Finish();
  auto exits = All<format::ProcessExit>();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].code, 3);
  EXPECT_EQ(exits[0].how, 1u);
  EXPECT_TRUE(log().finished);
}

TEST_F(RecorderEngineTest, CrashUsesTheEmergencySlotWhenTheSinkIsBusy) {
  InitRank(kComm);
  siginfo_t info{};
  info.si_code = SEGV_MAPERR;
  info.si_addr = reinterpret_cast<void*>(0x123);
  log().sinks_busy = true;
  engine_->OnCrash(SIGSEGV, &info, nullptr);
  EXPECT_EQ(log().emergencies, 1);
  auto crash = All<format::Crash>().back();
  EXPECT_EQ(crash.signal, static_cast<uint32_t>(SIGSEGV));
  EXPECT_EQ(crash.address, 0x123u);
}

TEST_F(RecorderEngineTest, ChildOfABareCloneIsNotRecorded) {
  InitRank(kComm);
  FakeLog* parents = FakeLog::last;
  size_t before = parents->Events().size();
  engine_->OnForkChild();  // as the hooks call it; the C library's fork handlers have not run
  AllReduce(kComm);
  engine_->OnExit(0, preload::ExitHow::kExit);
  EXPECT_TRUE(parents->abandoned);
  EXPECT_EQ(parents->Events().size(), before);
  EXPECT_EQ(FakeLog::made, 1);
}

TEST_F(RecorderEngineTest, StepsAreCountedAndPayloadsNameTheirSegment) {
  engine_->OnStep(700);  // before there is a log
  InitRank(kComm);
  engine_->OnStep(701);
  engine_->OnStep(702);
  EXPECT_EQ(log().step, 3u);
  log().segment = 5;
  preload::SnapshotCall call;
  call.name = "w1";
  call.data = send_;
  call.bytes = sizeof send_;
  call.dtype = ncclFloat32;
  engine_->OnSnapshot(call);
  EXPECT_EQ(All<format::Snapshot>().back().tensor.segment, 5u);
}

TEST_F(RecorderEngineTest, ACheckpointHasWhatIsRegisteredAndItsEventComesLast) {
  InitRank(kComm);
  engine_->OnCheckpointWanted();
  EXPECT_EQ(engine_->OnStep(4), 4u);  // the first one needs none
  preload::RegisteredObject tensor;
  std::strcpy(tensor.name, "weights");
  tensor.data = send_;
  tensor.bytes = sizeof send_;
  tensor.dtype = ncclFloat32;
  tensor.dims = 1;
  tensor.shape[0] = 4;
  preload::RegisteredObject state;
  std::strcpy(state.name, "state");
  state.save = [](void* user, preload::RegisteredObject::Write write, void* sink) {
    write(sink, user, 2);
    write(sink, "xyz", 3);
  };
  char first[] = "ab";
  state.user = first;
  auto& registry = preload::CheckpointRegistry::Get();
  registry.Register(tensor);
  registry.Register(state);
  engine_->OnStep(5);
  EXPECT_TRUE(All<format::Checkpoint>().empty()) << "nobody asked";
  engine_->OnCheckpointWanted();
  EXPECT_EQ(engine_->OnStep(6), 6u);
  EXPECT_EQ(log().Kinds().back(), format::EventKind::kCheckpoint);
  const auto checkpoint = All<format::Checkpoint>().back();
  EXPECT_EQ(checkpoint.number, 1u);
  EXPECT_EQ(checkpoint.step, 6u);
  EXPECT_EQ(checkpoint.items, 2u);
  EXPECT_EQ(checkpoint.missing, 0u);
  EXPECT_EQ(checkpoint.bytes, sizeof send_ + 5);
  const auto items = All<format::Snapshot>();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].name, "weights");
  EXPECT_EQ(items[0].checkpoint, 1u);
  EXPECT_FALSE(items[0].opaque);
  EXPECT_TRUE(items[1].opaque);
  EXPECT_EQ(log().payloads[items[1].tensor.hash], "abxyz");
  EXPECT_EQ(log().checkpoints, std::vector<uint64_t>{3});
  log().drop_payloads = true;
  engine_->OnCheckpointWanted();
  registry.Unregister("state");
  engine_->OnStep(7);
  EXPECT_EQ(All<format::Checkpoint>().back().missing, 1u);
  EXPECT_EQ(log().checkpoints.size(), 1u) << "no window begins there";
  registry.Unregister("weights");
}

TEST_F(RecorderEngineTest, SnapshotsCarryNameShapeAndPayload) {
  InitRank(kComm);
  int64_t shape[] = {2, 2};
  preload::SnapshotCall call;
  call.name = "w1";
  call.data = send_;
  call.bytes = sizeof send_;
  call.dtype = ncclFloat32;
  call.shape = shape;
  engine_->OnSnapshot(call);
  auto snapshot = All<format::Snapshot>().back();
  EXPECT_EQ(snapshot.name, "w1");
  EXPECT_EQ(snapshot.tensor.count, 4u);
  EXPECT_EQ(snapshot.shape.size(), 2u);
  EXPECT_EQ(snapshot.tensor.segment, 0u);
  EXPECT_EQ(log().payloads.count(snapshot.tensor.hash), 1u);
}

}  // namespace
}  // namespace deja::recorder
