// What is written of the program's locks, against stand-ins for the real functions.
#include <pthread.h>

#include <cerrno>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "format/tail/lock_reading.h"
#include "preload/meet/lock_order.h"
#include "tests/unit/recorder/core/recorder_engine_fixture.h"

namespace deja::recorder {
namespace {

using format::LockUse;
using preload::LockCall;

struct WrittenReading {
  uint32_t thread;
  format::LockReading reading;
};

class LocksTest : public RecorderEngineTest {
 protected:
  void SetUp() override {
    RecorderEngineTest::SetUp();
    InitRank(kComm);
    preload::WantLockOrder(true);
    preload::OnMoreThreads();
    ASSERT_TRUE(preload::LocksAreOrdered());
    ASSERT_NE(preload::LockCounter(kA), preload::LockCounter(kB));
  }
  void TearDown() override {
    preload::WantLockOrder(false);
    RecorderEngineTest::TearDown();
  }

  // A call of the program's whose real function returns `result`.
  int Lock(LockUse use, const void* lock, int result) {
    struct Made : LockCall {
      int returned = 0;
    } call;
    call.use = use;
    call.lock = lock;
    call.timed_out = ETIMEDOUT;
    call.returned = result;
    call.real = [](LockCall& c) { c.result = static_cast<Made&>(c).returned; };
    engine_->OnLock(call);
    return call.result;
  }

  std::vector<WrittenReading> Written() {
    std::vector<WrittenReading> all;
    for (const format::Event& event : log().Events()) {
      const auto* run = event.As<format::ClockRun>();
      if (run == nullptr) continue;
      format::ForEachReading(*run, [&](format::ClockSource source, int64_t value) {
        format::LockReading reading;
        if (format::ReadLock(source, value, reading)) all.push_back({event.thread, reading});
      });
    }
    return all;
  }
  // As (use, is a turn, turn or code).
  using Short = std::tuple<LockUse, bool, int64_t>;
  std::vector<Short> Readings() {
    std::vector<Short> all;
    for (const auto& [thread, r] : Written())
      all.emplace_back(r.use, r.is_turn, r.is_turn ? static_cast<int64_t>(r.turn) : r.code);
    return all;
  }

  static constexpr bool kTurn = true;
  static constexpr bool kOutcome = false;
  int places_[64] = {};
  const void* const kA = &places_[0];
  const void* const kB = &places_[32];
};

TEST_F(LocksTest, EachLockCountsItsAcquisitions) {
  for (const void* lock : {kA, kA, kB, kA}) EXPECT_EQ(Lock(LockUse::kMutex, lock, 0), 0);
  const auto written = Written();
  ASSERT_EQ(written.size(), 4u);
  const void* locks[] = {kA, kA, kB, kA};
  const uint64_t turns[] = {0, 1, 0, 2};
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_TRUE(written[i].reading.is_turn);
    EXPECT_EQ(written[i].reading.counter, preload::LockCounter(locks[i])) << i;
    EXPECT_EQ(written[i].reading.turn, turns[i]) << i;
  }
}

TEST_F(LocksTest, AnAttemptThatFailsTakesNoTurn) {
  EXPECT_EQ(Lock(LockUse::kMutex, kA, EBUSY), EBUSY);
  EXPECT_EQ(Lock(LockUse::kMutex, kA, 0), 0);
  EXPECT_THAT(Readings(), ElementsAre(Short{LockUse::kMutex, kOutcome, EBUSY},
                                      Short{LockUse::kMutex, kTurn, 0}));
}

TEST_F(LocksTest, AMutexWhoseOwnerDiedIsTaken) {
  EXPECT_EQ(Lock(LockUse::kMutex, kA, EOWNERDEAD), EOWNERDEAD);
  EXPECT_THAT(Readings(), ElementsAre(Short{LockUse::kMutex, kTurn, 0}));
}

TEST_F(LocksTest, AWaitEndsWithTheMutexAlsoWhenItsTimeIsOver) {
  EXPECT_EQ(Lock(LockUse::kCondition, kA, 0), 0);
  EXPECT_EQ(Lock(LockUse::kCondition, kA, ETIMEDOUT), ETIMEDOUT);
  EXPECT_THAT(Readings(), ElementsAre(Short{LockUse::kCondition, kTurn, 0},
                                      Short{LockUse::kCondition, kOutcome, ETIMEDOUT},
                                      Short{LockUse::kCondition, kTurn, 1}));
}

TEST_F(LocksTest, ASemaphoreThatASignalInterruptedIsAskedForAgain) {
  EXPECT_EQ(Lock(LockUse::kSemaphore, kA, EINTR), EINTR);
  EXPECT_EQ(Lock(LockUse::kSemaphore, kA, EAGAIN), EAGAIN);
  EXPECT_EQ(Lock(LockUse::kSemaphore, kA, 0), 0);
  EXPECT_THAT(Readings(), ElementsAre(Short{LockUse::kSemaphore, kOutcome, EAGAIN},
                                      Short{LockUse::kSemaphore, kTurn, 0}));
}

TEST_F(LocksTest, ABarrierSaysWhatItReturned) {
  EXPECT_EQ(Lock(LockUse::kBarrier, kA, PTHREAD_BARRIER_SERIAL_THREAD),
            PTHREAD_BARRIER_SERIAL_THREAD);
  EXPECT_EQ(Lock(LockUse::kBarrier, kA, 0), 0);
  EXPECT_THAT(Readings(),
              ElementsAre(Short{LockUse::kBarrier, kOutcome, PTHREAD_BARRIER_SERIAL_THREAD},
                          Short{LockUse::kBarrier, kOutcome, 0}));
}

TEST_F(LocksTest, ARoutineIsCountedBeforeItRuns) {
  struct Once : LockCall {
    std::function<void()> begin;
  } call;
  size_t readings = 0;  // when the routine runs
  call.use = LockUse::kOnce;
  call.lock = kA;
  call.begin = [&] {
    engine_->OnOnceBegins(call);
    readings = Written().size();
  };
  call.real = [](LockCall& c) { static_cast<Once&>(c).begin(); };
  engine_->OnLock(call);
  EXPECT_EQ(readings, 1u);
  EXPECT_EQ(Lock(LockUse::kOnce, kA, 0), 0);
  EXPECT_THAT(Readings(),
              ElementsAre(Short{LockUse::kOnce, kTurn, 0}, Short{LockUse::kOnce, kOutcome, 0}));
}

TEST_F(LocksTest, AThreadThatIsNotRecordedAnyMoreTakesNoTurn) {
  EXPECT_EQ(Lock(LockUse::kMutex, kA, 0), 0);
  engine_->OnThreadEnd();
  EXPECT_EQ(Lock(LockUse::kMutex, kA, 0), 0);
  EXPECT_EQ(preload::TurnsOf(preload::LockCounter(kA)).load(), 1u);
  EXPECT_EQ(Written().size(), 1u);
}

TEST_F(LocksTest, TurnsOfThreadsAreInTheOrderInWhichTheyHadTheLock) {
  constexpr int kTimes = 200;
  struct Taken : LockCall {
    std::mutex* mutex = nullptr;
  };
  std::mutex mutex;
  std::vector<uint32_t> order;  // threads, as they had it
  const auto body = [&] {
    for (int i = 0; i < kTimes; ++i) {
      Taken call;
      call.lock = kA;
      call.mutex = &mutex;
      call.real = [](LockCall& c) {
        static_cast<Taken&>(c).mutex->lock();
        c.result = 0;
      };
      engine_->OnLock(call);
      order.push_back(preload::Self().index);
      mutex.unlock();
    }
    engine_->OnThreadEnd();
  };
  std::thread first(body);
  std::thread second(body);
  first.join();
  second.join();
  std::map<uint64_t, uint32_t> by_turn;
  for (const auto& [thread, reading] : Written()) by_turn[reading.turn] = thread;
  ASSERT_EQ(by_turn.size(), order.size());
  ASSERT_EQ(by_turn.rbegin()->first + 1, order.size());
  for (const auto& [turn, thread] : by_turn) EXPECT_EQ(thread, order[turn]) << turn;
}

TEST_F(LocksTest, AServerAsksForAnOrderBeforeItsFirstThread) {
  preload::WantLockOrder(false);
  engine_->OnThreadsMeet();
  EXPECT_FALSE(preload::LocksAreOrdered());
  preload::OnMoreThreads();
  EXPECT_TRUE(preload::LocksAreOrdered());
}

TEST_F(LocksTest, AServerThatHasMadeThreadsKeepsNone) {
  preload::WantLockOrder(false);
  preload::OnMoreThreads();
  engine_->OnThreadsMeet();
  preload::OnMoreThreads();
  EXPECT_FALSE(preload::LocksAreOrdered());
}

}  // namespace
}  // namespace deja::recorder
