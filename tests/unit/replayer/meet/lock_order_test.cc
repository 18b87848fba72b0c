// Threads of a replay at locks, against a recording that is written here and stand-ins for the real
// functions.
#include "replayer/meet/lock_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "format/tail/clock_run.h"
#include "format/tail/lock_reading.h"
#include "preload/engine/engine.h"
#include "preload/meet/lock_order.h"
#include "replayer/meet/stillness.h"
#include "tests/unit/replayer/written_rank.h"

namespace deja::replayer {
namespace {

using format::LockUse;
using preload::LockCall;
using testing::HasSubstr;

constexpr uint16_t kCounter = 9;

struct Did {
  LockUse use;
  bool is_turn;
  int64_t value;  // turn or code
};
Did Turn(uint64_t turn, LockUse use = LockUse::kMutex) {
  return {use, true, static_cast<int64_t>(turn)};
}
Did Outcome(int code, LockUse use = LockUse::kMutex) {
  return {use, false, code};
}

// A lock of the program's, and what was called for it.
struct FakeLock : LockCall {
  FakeLock(LockUse used, std::mutex& taken) : mutex(taken) {
    use = used;
    lock = &taken;
    timed_out = ETIMEDOUT;
    real = [](LockCall& call) {
      auto& self = static_cast<FakeLock&>(call);
      ++self.reals;
      self.mutex.lock();
      call.result = 0;
    };
    take = [](LockCall& call) {
      auto& self = static_cast<FakeLock&>(call);
      ++self.takes;
      self.mutex.lock();
      call.result = 0;
    };
    give_back = [](LockCall& call) {
      auto& self = static_cast<FakeLock&>(call);
      ++self.given_back;
      self.mutex.unlock();
    };
  }
  std::mutex& mutex;
  int reals = 0;
  int takes = 0;
  int given_back = 0;
};

class LockOrderTest : public testing::Test {
 protected:
  void SetUp() override {
    preload::WantLockOrder(true);
    preload::OnMoreThreads();
    ASSERT_TRUE(preload::LocksAreOrdered());
    Stillness::SetHaste(100);
  }
  void TearDown() override {
    preload::WantLockOrder(false);
    Stillness::SetHaste(0);
  }

  // The next thread of the recording; it ended, or was cut off by the end of the process.
  void Record(const std::string& name, const std::vector<Did>& readings, bool ended = true) {
    WrittenRank::Thread thread = rank_.Begin(name);
    for (const Did& did : readings) {
      format::ClockRun run;
      const auto source =
          did.is_turn ? format::SourceOfTurn(kCounter) : format::ClockSource::kLockOutcome;
      run.sources.push_back(static_cast<uint32_t>(source));
      run.deltas.push_back(
          did.is_turn ? format::ValueOfTurn(did.use, kCounter, static_cast<uint64_t>(did.value))
                      : format::ValueOfOutcome(did.use, kCounter, static_cast<int32_t>(did.value)));
      thread.Add(run);
    }
    if (ended) thread.Add(format::ThreadEnd{});
  }

  void Open(bool stops = true) {
    session_ = rank_.Open(stops);
    ASSERT_NE(session_, nullptr);
    order_ = LockOrder::Make(*session_);
    ASSERT_NE(order_, nullptr);
    static auto* kept = new std::vector<LockOrder*>();  // never destroyed
    kept->push_back(order_);
  }

  template <typename Body>
  std::thread Start(const char* name, Body body) {
    return std::thread([this, name, body] { body(ThreadNamed(*session_, name)); });
  }

  std::string Report() { return rank_.Report(); }

  WrittenRank rank_;
  Session* session_ = nullptr;
  LockOrder* order_ = nullptr;
};

TEST_F(LockOrderTest, ThreadsTakeALockInTheRecordedOrder) {
  Record("0.1", {Turn(1), Turn(2), Turn(5)});
  Record("0.2", {Turn(0), Turn(3), Turn(4)});
  Open();
  std::mutex mutex;
  std::string log;
  const auto body = [&](char me) {
    return [&, me](ThreadState& thread) {
      for (int i = 0; i < 3; ++i) {
        FakeLock call(LockUse::kMutex, mutex);
        order_->Serve(thread, call);
        EXPECT_EQ(call.result, 0);
        EXPECT_EQ(call.takes, 1);
        log += me;
        mutex.unlock();
      }
    };
  };
  std::thread first = Start("0.1", body('1'));
  std::thread second = Start("0.2", body('2'));
  first.join();
  second.join();
  EXPECT_EQ(log, "211221");
}

TEST_F(LockOrderTest, AnAttemptThatFailedFailsWithoutALookAtTheLock) {
  Record("0.1", {Outcome(EBUSY), Turn(0)});
  Open();
  std::mutex mutex;
  Start("0.1", [&](ThreadState& thread) {
    FakeLock attempt(LockUse::kMutex, mutex);
    order_->Serve(thread, attempt);
    EXPECT_EQ(attempt.result, EBUSY);
    EXPECT_EQ(attempt.reals + attempt.takes, 0);
    FakeLock again(LockUse::kMutex, mutex);
    order_->Serve(thread, again);
    EXPECT_EQ(again.result, 0);
    EXPECT_EQ(again.takes, 1);
    mutex.unlock();
  }).join();
}

TEST_F(LockOrderTest, AWaitGivesTheMutexBackAndEndsWithItWhoeverSignals) {
  Record("0.1", {Turn(0), Turn(2, LockUse::kCondition), Outcome(ETIMEDOUT, LockUse::kCondition),
                 Turn(3, LockUse::kCondition)});
  Record("0.2", {Turn(1)});
  Open();
  std::mutex mutex;
  std::string log;
  std::thread first = Start("0.1", [&](ThreadState& thread) {
    FakeLock call(LockUse::kMutex, mutex);
    order_->Serve(thread, call);
    log += "locked ";
    FakeLock wait(LockUse::kCondition, mutex);
    order_->Serve(thread, wait);
    log += "woken ";
    EXPECT_EQ(wait.result, 0);
    EXPECT_EQ(wait.reals, 0);
    EXPECT_EQ(wait.given_back, 1);
    FakeLock timed(LockUse::kCondition, mutex);
    order_->Serve(thread, timed);
    EXPECT_EQ(timed.result, ETIMEDOUT);
    EXPECT_EQ(timed.reals, 0);
    mutex.unlock();
  });
  std::thread second = Start("0.2", [&](ThreadState& thread) {
    FakeLock call(LockUse::kMutex, mutex);
    order_->Serve(thread, call);
    log += "other ";
    mutex.unlock();
  });
  first.join();
  second.join();
  EXPECT_EQ(log, "locked other woken ");
}

TEST_F(LockOrderTest, ABarrierIsMetAndReturnsWhatItReturned) {
  Record("0.1", {Outcome(-1, LockUse::kBarrier)});
  Open();
  std::mutex mutex;
  Start("0.1", [&](ThreadState& thread) {
    FakeLock call(LockUse::kBarrier, mutex);
    order_->Serve(thread, call);
    EXPECT_EQ(call.result, -1);
    EXPECT_EQ(call.reals, 1);
    mutex.unlock();
  }).join();
}

TEST_F(LockOrderTest, ARoutineIsRunByTheThreadThatRanIt) {
  Record("0.1", {Outcome(0, LockUse::kOnce)});
  Record("0.2", {Turn(0, LockUse::kOnce)});
  Open();
  struct Once : LockCall {
    LockOrder* order = nullptr;
    ThreadState* thread = nullptr;
    std::atomic<int>* control = nullptr;
    std::string* log = nullptr;
  };
  std::atomic<int> control{0};  // as glibc has it: 2, it has run
  std::string log;
  const auto body = [&](ThreadState& thread) {
    Once call;
    call.use = LockUse::kOnce;
    call.lock = &control;
    call.order = order_;
    call.thread = &thread;
    call.control = &control;
    call.log = &log;
    call.real = [](LockCall& c) {
      auto& once = static_cast<Once&>(c);
      if (once.control->load() == 2) return;
      once.order->BeginOnce(*once.thread, once);
      *once.log += preload::Self().name;
      once.control->store(2);
    };
    order_->Serve(thread, call);
    EXPECT_EQ(control.load(), 2);
  };
  std::thread first = Start("0.1", body);
  std::thread second = Start("0.2", body);
  first.join();
  second.join();
  EXPECT_EQ(log, "0.2");
}

TEST_F(LockOrderTest, ARoutineThatNoThreadRunsIsRunByTheOneThatWaitsForIt) {
  Record("0.1", {Outcome(0, LockUse::kOnce)});
  Open();
  std::mutex mutex;
  Start("0.1", [&](ThreadState& thread) {
    int control = 0;
    FakeLock call(LockUse::kOnce, mutex);
    call.lock = &control;
    order_->Serve(thread, call);
    EXPECT_EQ(call.reals, 1);
    mutex.unlock();
  }).join();
}

TEST_F(LockOrderTest, TurnsOfAThreadThatHasEndedArePassedOver) {
  Record("0.1", {Turn(0), Turn(1)});
  Record("0.2", {Turn(2)});
  Open();
  Start("0.1", [&](ThreadState& thread) { order_->EndThread(thread); }).join();
  std::mutex mutex;
  Start("0.2", [&](ThreadState& thread) {
    FakeLock call(LockUse::kMutex, mutex);
    order_->Serve(thread, call);
    EXPECT_EQ(call.takes, 1);
    mutex.unlock();
  }).join();
  EXPECT_EQ(Report(), "");
}

TEST_F(LockOrderTest, ALockOfAnotherKindIsTakenWithoutAnOrder) {
  Record("0.1", {Turn(7)});
  Open();
  std::mutex mutex;
  Start("0.1", [&](ThreadState& thread) {
    FakeLock call(LockUse::kSpin, mutex);
    order_->Serve(thread, call);
    EXPECT_EQ(call.reals, 1);
    mutex.unlock();
  }).join();
}

TEST_F(LockOrderTest, AThreadPastItsRecordingGoesOnWhenNothingMoves) {
  Record("0.1", {Turn(0)}, false);
  Open();
  std::mutex mutex;
  Start("0.1", [&](ThreadState& thread) {
    for (int i = 0; i < 3; ++i) {
      FakeLock call(LockUse::kMutex, mutex);
      order_->Serve(thread, call);
      EXPECT_EQ(call.takes, i == 0 ? 1 : 0);
      EXPECT_EQ(call.reals, i == 0 ? 0 : 1);
      mutex.unlock();
    }
  }).join();
}

// Thread 0.1, whose turn it is, does not come.
class StandstillTest : public LockOrderTest {
 protected:
  void Stand(bool stops) {
    Record("0.1", {Turn(0)});
    Record("0.2", {Turn(1), Turn(5)});
    Open(stops);
    std::mutex mutex;
    Start("0.2", [&](ThreadState& thread) {
      for (int i = 0; i < 2; ++i) {
        FakeLock call(LockUse::kMutex, mutex);
        order_->Serve(thread, call);
        EXPECT_EQ(call.result, 0);
        mutex.unlock();
      }
    }).join();
  }
};

TEST_F(StandstillTest, IsReportedAndEndsTheReplayAsADivergence) {
  EXPECT_EXIT(Stand(true), testing::ExitedWithCode(4),
              "replay: thread 0.2 waits for its turn at a mutex, and nothing moves: it is the turn "
              "of thread 0.1");
}

TEST_F(StandstillTest, IsReportedAndGoesOnWithoutAnOrderWhereDivergencesAreWarnings) {
  Stand(false);
  EXPECT_THAT(Report(),
              HasSubstr("it is the turn of thread 0.1; from here on threads take locks in "
                        "any order"));
}

}  // namespace
}  // namespace deja::replayer
