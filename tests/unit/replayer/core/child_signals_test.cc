// SIGCHLD comes where it came in the recording.
#include "replayer/core/child_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>

#include "api/libc_table.h"
#include "preload/engine/child_signal.h"
#include "tests/unit/replayer/fake_rank.h"

namespace deja::replayer {
namespace {

int g_came = 0;

class ChildSignalsTest : public testing::Test {
 protected:
  ChildSignalsTest() {
    g_came = 0;
    preload::t_child_signal = {};
    preload::g_child_signal_handler.store([](int) { ++g_came; });
    rank_.Thread(0, "0");
  }
  ~ChildSignalsTest() override { preload::g_child_signal_handler.store(nullptr); }
  void Input(api::LibcApi api, int64_t result, int error = 0) {
    format::Input input;
    input.api = static_cast<uint32_t>(api);
    input.key = api == api::LibcApi::ksigaction ? SIGCHLD : 5;
    input.result = result;
    input.error = static_cast<uint32_t>(error);
    rank_.Add(0, input);
  }
  ChildSignals Signals() {
    auto plan = ReplayPlan::Build(rank_, {[](uint32_t) { return CallKind::kOrdered; },
                                          [](uint32_t) { return false; }, api::InputKindOf});
    plan_ = std::move(*plan);
    return ChildSignals(*plan_);
  }

  FakeRank rank_;
  std::unique_ptr<ReplayPlan> plan_;
};

TEST_F(ChildSignalsTest, ItComesAfterTheEventsThatCameBeforeIt) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksem_wait, 1);
  Input(api::LibcApi::ksigaction, 0);
  Input(api::LibcApi::ksem_wait, 2);
  ChildSignals signals = Signals();
  EXPECT_TRUE(signals.AreRecorded());
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 0);
  signals.CountEvent(1);  // another thread
  EXPECT_EQ(g_came, 0);
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 1);
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 1);
}

TEST_F(ChildSignalsTest, OneBeforeEventsThatAreNotMadeIsLeft) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksem_wait, 1);
  Input(api::LibcApi::ksigaction, 0);
  Input(api::LibcApi::ksem_wait, 2);
  Input(api::LibcApi::ksigaction, 0);
  ChildSignals signals = Signals();
  EXPECT_EQ(signals.MissedAtExit(0), 2u);
  EXPECT_EQ(signals.MissedAtExit(1), 0u);  // another thread
  signals.CountEvent(0);
  signals.CountEvent(0);
  EXPECT_EQ(signals.MissedAtExit(0), 1u);
  signals.CountEvent(0);
  EXPECT_EQ(signals.MissedAtExit(0), 0u);
  EXPECT_EQ(g_came, 2);
}

TEST_F(ChildSignalsTest, OneAfterTheLastEventMayComeLaterThanTheExit) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksigaction, 1, 5);  // in its fifth sleep
  ChildSignals signals = Signals();
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 0);
  EXPECT_EQ(signals.MissedAtExit(0), 0u);
}

TEST_F(ChildSignalsTest, ConnectsAndAcceptsOfUnixSocketsCount) {
  const std::string unix("\1\0/s", 4);
  const std::string internet("\2\0", 2);
  uint32_t number = 0;
  const auto open = [&](format::ConnectionKind kind, const std::string& remote) {
    format::ConnectionOpened opened;
    opened.connection = ++number;
    opened.kind = static_cast<uint32_t>(kind);
    opened.name = "connection";
    opened.remote = remote;
    rank_.Add(0, opened);
  };
  open(format::ConnectionKind::kConnected, unix);
  open(format::ConnectionKind::kConnected, internet);
  open(format::ConnectionKind::kBound, unix);
  open(format::ConnectionKind::kAccepted, unix);
  Input(api::LibcApi::ksigaction, 0);
  ChildSignals signals = Signals();
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 0);
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 1);
}

TEST_F(ChildSignalsTest, ASignalThatEndedAWaitIsTheWaits) {
  Input(api::LibcApi::kpoll, -1, EINTR);
  ChildSignals signals = Signals();
  EXPECT_TRUE(signals.AreRecorded());
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 0);
}

TEST_F(ChildSignalsTest, FromACheckpointOnLiveOnesCount) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksigaction, 0);
  ChildSignals signals = Signals();
  signals.LeaveLive();
  EXPECT_FALSE(signals.AreRecorded());
  signals.CountEvent(0);
  EXPECT_EQ(g_came, 0);
}

TEST_F(ChildSignalsTest, ARecordingWithoutThemLeavesLiveOnes) {
  Input(api::LibcApi::kpoll, 1);
  EXPECT_FALSE(Signals().AreRecorded());
}

// Calls are counted by the hooks.
TEST_F(ChildSignalsTest, ItComesAtTheFileCallAfterWhichItCame) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksigaction, preload::PlaceOfChildSignal(2, true));
  ChildSignals signals = Signals();
  preload::t_child_signal.file_calls = 2;
  signals.CountFileCall(0);
  EXPECT_EQ(g_came, 0) << "the event before it is missing";
  preload::t_child_signal.file_calls = 0;
  signals.CountEvent(0);
  preload::t_child_signal.file_calls = 1;
  signals.CountFileCall(0);
  EXPECT_EQ(g_came, 0);
  preload::t_child_signal.file_calls = 2;
  signals.CountFileCall(0);
  EXPECT_EQ(g_came, 1);
}

TEST_F(ChildSignalsTest, WhereItCameBetweenTwoCallsItComesWithTheNextOne) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksigaction, preload::PlaceOfChildSignal(1, false));
  ChildSignals signals = Signals();
  signals.CountEvent(0);
  preload::t_child_signal.file_calls = 1;
  signals.CountFileCall(0);
  EXPECT_EQ(g_came, 0);
  EXPECT_TRUE(preload::t_child_signal.waits);
  ChildSignals::GiveWaiting();
  EXPECT_EQ(g_came, 1);
  EXPECT_FALSE(preload::t_child_signal.waits);
}

TEST_F(ChildSignalsTest, AReadingThatIsTakenBackDoesNotCount) {
  Input(api::LibcApi::ksem_wait, 0);
  format::ClockRun run;
  run.sources = {static_cast<uint32_t>(format::ClockSource::kMonotonic)};
  run.deltas = {5, 5, 5};
  rank_.Add(0, run);
  Input(api::LibcApi::ksigaction, 0);
  ChildSignals signals = Signals();
  signals.CountEvent(0);
  signals.CountReading(0);
  signals.CountReading(0);
  signals.TakeReadingBack(1);  // another thread's
  signals.TakeReadingBack(0);
  signals.CountReading(0);
  EXPECT_EQ(g_came, 0);
  signals.CountReading(0);
  EXPECT_EQ(g_came, 1);
}

// However often a clock is read on the way.
TEST_F(ChildSignalsTest, ItEndsTheSleepThatItEnded) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksigaction, preload::PlaceOfChildSignal(0, false), 3);
  ChildSignals signals = Signals();
  signals.CountEvent(0);
  signals.CountReading(0);
  for (const uint32_t begins_and_ends : {1, 2}) {
    preload::t_child_signal.sleeps = begins_and_ends;
    EXPECT_FALSE(signals.CountSleep(0));
    signals.CountReading(0);
  }
  preload::t_child_signal.sleeps = 3;
  EXPECT_FALSE(signals.CountSleep(1)) << "another thread's";
  EXPECT_EQ(g_came, 0);
  EXPECT_TRUE(signals.CountSleep(0));
  EXPECT_EQ(g_came, 1);
  EXPECT_FALSE(preload::t_child_signal.waits);
  EXPECT_FALSE(signals.CountSleep(0));
}

TEST_F(ChildSignalsTest, WithoutAHandlerItWaits) {
  Input(api::LibcApi::ksem_wait, 0);
  Input(api::LibcApi::ksigaction, 0);
  ChildSignals signals = Signals();
  const auto handler = preload::g_child_signal_handler.exchange(nullptr);
  signals.CountEvent(0);
  preload::g_child_signal_handler.store(handler);
  EXPECT_EQ(g_came, 0);
  signals.CountFileCall(0);
  EXPECT_EQ(g_came, 1);
}

}  // namespace
}  // namespace deja::replayer
