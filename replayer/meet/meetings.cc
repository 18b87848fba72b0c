#include "replayer/meet/meetings.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <string>

#include "api/libc_table.h"
#include "common/runtime/futex.h"
#include "preload/engine/child_signal.h"
#include "preload/meet/robust_mutexes.h"
#include "preload/process/guard.h"
#include "replayer/core/ending.h"
#include "replayer/core/session.h"
#include "replayer/meet/ending_signal.h"
#include "replayer/meet/meeting_list.h"
#include "replayer/meet/recorded_meetings.h"
#include "replayer/meet/stillness.h"
#include "replayer/process/without_interpreter.h"

namespace deja::replayer {
namespace {

using api::LibcApi;
using preload::AcquireCall;
using preload::Guard;

// The recorded thread never reached what this one asks for: the process was killed before.
bool WasKilledBefore(const Session& session, const ThreadState& thread) {
  const ReplayPlan& plan = session.plan();
  return thread.recorded != kNone && session.progress().RemainingOf(thread.recorded) == 0 &&
         !plan.end().HappensByItself(plan.pid) && !plan.threads()[thread.recorded].ended;
}

const char* NameOf(const AcquireCall& call) {
  if (call.mutex != nullptr) return "mutex";
  return call.semaphore != nullptr ? "semaphore" : "reader-writer lock";
}

const char* FunctionOf(const AcquireCall& call) {
  if (call.mutex != nullptr) return "pthread_mutex_lock";
  return call.semaphore != nullptr ? "sem_wait" : "pthread_rwlock_wrlock";
}

class Turn {
 public:
  Turn(Session& session, ThreadState& thread, AcquireCall& call, uint32_t number)
      : session_(session), thread_(thread), call_(call), number_(number), still_(session) {}

  // Takes the semaphore when it is the acquisition's turn. False: a signal came.
  bool Take() {
    const Guard guard;
    while (!MayTake())
      if (!Wait()) return false;
    while (!Attempt()) {
      const uint64_t until = MonotonicNs() + Stillness::kTickNs;
      const int error = TakeUntil(SpanOf(until));
      if (error == 0) break;
      if (error == EINTR) return false;
      if (still_.IsTimeToLook()) Look("no process gives it back");
      if (gave_up_) break;
    }
    if (Current() == number_) Advance(number_);
    return true;
  }
  // For a semaphore.
  [[nodiscard]] bool IsReady() const {
    const Guard guard;
    int value = 0;
    return MayTake() && sem_getvalue(call_.semaphore, &value) == 0 && value > 0;
  }

 private:
  [[nodiscard]] uint32_t Current() const { return call_.order->load(std::memory_order_acquire); }
  // Also when the order gave way after it.
  [[nodiscard]] bool MayTake() const { return static_cast<int32_t>(Current() - number_) >= 0; }

  bool Attempt() {
    if (call_.mutex == nullptr && call_.semaphore == nullptr) {
      call_.Real();
      return call_.result == 0;
    }
    return call_.mutex != nullptr ? IsTaken(pthread_mutex_trylock(call_.mutex))
                                  : sem_trywait(call_.semaphore) == 0;
  }
  // What became of the owner of a robust mutex is for the recording to say.
  bool IsTaken(int error) {
    if (error == EOWNERDEAD) pthread_mutex_consistent(call_.mutex);
    return error == 0 || error == EOWNERDEAD;
  }
  // `deadline`: by CLOCK_MONOTONIC. Returns an errno.
  int TakeUntil(const timespec& deadline) {
    if (call_.mutex == nullptr && call_.semaphore == nullptr) {
      // An attempt, or a wait with a deadline that is over: it has succeeded in the recording.
      const timespec pause = SpanOf(Stillness::kMs / 5);
      syscall(SYS_nanosleep, &pause, nullptr);
      return Attempt() ? 0 : ETIMEDOUT;
    }
    if (call_.mutex != nullptr) {
      const int error = pthread_mutex_clocklock(call_.mutex, CLOCK_MONOTONIC, &deadline);
      return IsTaken(error) ? 0 : error;
    }
    return sem_clockwait(call_.semaphore, CLOCK_MONOTONIC, &deadline) == 0 ? 0 : errno;
  }

  void Advance(uint32_t from) {
    uint32_t expected = from;
    if (call_.order->compare_exchange_strong(expected, from + 1))
      FutexWake(*call_.order, INT_MAX, FutexScope::kShared);
  }

  bool Wait() {
    const uint32_t current = Current();
    if (MayTake()) return true;
    if (!FutexWaitNs(*call_.order, current, Stillness::kTickNs, FutexScope::kShared)) return false;
    if (Current() == current && still_.IsTimeToLook()) PassOver(current);
    return true;
  }

  void PassOver(uint32_t current) {
    const MeetingOwner owner = OwnerOfMeeting(session_.options().scratch, call_.key, current);
    if (owner.gone) return Advance(current);
    if (owner.pid != 0)
      Look("it is the turn of " + owner.name);
    else
      Look("it is the turn of a process that has not begun", Stillness::kTellNs);
    if (gave_up_) Advance(current);
  }

  void Look(const std::string& why, uint64_t patience = Stillness::kGiveUpNs) {
    const std::string what = "acquisition " + std::to_string(number_ + 1) + " of a " +
                             NameOf(call_) + " waits, and nothing moves: " + why;
    if (still_.IsTimeToTell()) Say("replay: " + what);
    if (gave_up_ || !still_.IsTimeToGiveUp(patience)) return;
    gave_up_ = true;
    DivergeAtMeeting(session_, thread_, FunctionOf(call_), what);
  }

  Session& session_;
  ThreadState& thread_;
  AcquireCall& call_;
  const uint32_t number_;
  Stillness still_;
  bool gave_up_ = false;
};

void Fail(AcquireCall& call, int error) {
  call.result = -1;
  call.error = error;
}

// An attempt, of which there is no recording.
void FailToTake(AcquireCall& call) {
  Fail(call, call.semaphore != nullptr ? EAGAIN : EBUSY);
}

// An acquisition that was not recorded: what it takes would be missing elsewhere. So it gets
// nothing as long as anything moves, or another is still to take it; where neither, after
// `patience`.
void WaitWithoutTurn(Stillness& still, const std::string& scratch, AcquireCall& call,
                     uint64_t patience) {
  while (!still.IsTimeToGiveUp()) {
    const timespec tick = SpanOf(Stillness::kTickNs);
    const Guard guard;
    // Signals end waits for semaphores alone.
    if (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &tick, nullptr) != 0 &&
        call.semaphore != nullptr)
      return Fail(call, EINTR);
    if (!still.IsTimeToLook()) continue;
    const bool is_missed =
        OwnerOfMeeting(scratch, call.key, call.order->load(std::memory_order_acquire)).pid != 0;
    if (!is_missed && still.ns_of_the_watch() >= patience) break;
    if (still.IsTimeToTell())
      Say(std::string("replay: a thread takes a ") + NameOf(call) +
          " once more than the recorded one, and nothing moves");
  }
  call.Real();
}

// The recorded thread has made no more acquisitions.
void ServeSurplus(Session& session, ThreadState& thread, AcquireCall& call) {
  if (AwaitEndingSignal(session, thread) && call.semaphore != nullptr && !call.tries)
    return Fail(call, EINTR);
  if (call.tries) return FailToTake(call);
  if (call.gives_back) return call.Real();  // it has the mutex, for which others wait
  if (WasKilledBefore(session, thread)) {
    const Guard guard;
    Park(session, thread, "sem_wait", 0, 0, nullptr);
  }
  Stillness still(session);
  WaitWithoutTurn(still, session.options().scratch, call, Stillness::kLeftNs);
}

}  // namespace

void ServeAcquire(Session& session, ThreadState& thread, AcquireCall& call) {
  if (!KeepsOrder(session) || thread.recorded == kNone) return call.Real();
  const RecordedInput* next = NextMeeting(session, thread, LibcApi::ksem_wait, call.key);
  if (next == nullptr) return ServeSurplus(session, thread, call);
  if (next->result < 0) {
    const int error = next->error;
    if (error == EINTR) preload::RunChildSignalHandler();
    ConsumeMeeting(session, thread, LibcApi::ksem_wait, call.key);
    if (error == ENOTRECOVERABLE && call.gives_back && call.mutex != nullptr) {
      const Guard guard;
      pthread_mutex_unlock(call.mutex);
    }
    return Fail(call, error);
  }
  const int error = next->error;  // of a wait whose time was over, or whose owner had died
  Turn turn(session, thread, call, static_cast<uint32_t>(next->result));
  if (call.gives_back) {
    const Guard guard;
    pthread_mutex_unlock(call.mutex);
  }
  WithoutInterpreter apart(call.tries && call.semaphore != nullptr && !turn.IsReady());
  bool taken = turn.Take();
  while (!taken && call.semaphore == nullptr) taken = turn.Take();
  apart.End();
  if (!taken) return Fail(call, EINTR);
  ConsumeMeeting(session, thread, LibcApi::ksem_wait, call.key);
  if (error == EOWNERDEAD) preload::RobustMutexes::SetOwnerDied(call.mutex);
  call.result = 0;
  call.error = error;
}

void ServeUnrecordedAcquire(const std::string& scratch, AcquireCall& call) {
  if (call.tries) return FailToTake(call);
  if (call.gives_back) return call.Real();
  Stillness still(scratch, nullptr);
  WaitWithoutTurn(still, scratch, call, Stillness::kTellNs);
}

}  // namespace deja::replayer
