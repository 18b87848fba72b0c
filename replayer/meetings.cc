#include "replayer/meetings.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "preload/api/libc_table.h"
#include "preload/guard.h"
#include "replayer/ending.h"
#include "replayer/meeting_list.h"
#include "replayer/session.h"
#include "replayer/stillness.h"
#include "replayer/without_interpreter.h"

namespace deja::replayer {
namespace {

using preload::AcquireCall;
using preload::Guard;
using preload::LibcApi;
using preload::PollCall;

void Diverge(Session& session, ThreadState& thread, const char* api, std::string what) {
  Divergence divergence = session.NewDivergence(DivergenceKind::kCall, thread);
  divergence.api = api;
  divergence.what = std::move(what);
  session.Diverge(thread, std::move(divergence), 0);
}

// The thread's next meeting of this kind; null: it has made all that it made.
const RecordedInput* Next(Session& session, ThreadState& thread, LibcApi api, uint64_t key) {
  if (thread.recorded == kNone) return nullptr;
  const auto& by_key = session.plan().threads()[thread.recorded].by_key;
  const auto it = by_key.find({static_cast<uint32_t>(api), key});
  if (it == by_key.end()) return nullptr;
  const uint32_t next = thread.next_by_key[it->first];
  return next < it->second.size() ? &session.plan().inputs()[it->second[next]] : nullptr;
}

void Consume(Session& session, ThreadState& thread, LibcApi api, uint64_t key) {
  ++thread.next_by_key[{static_cast<uint32_t>(api), key}];
  session.CountActivity();
}

// The recorded thread never came to what this one asks for: the process was killed before.
bool WasKilledBefore(const Session& session, const ThreadState& thread) {
  const ReplayPlan& plan = session.plan();
  return thread.recorded != kNone && session.RemainingOf(thread.recorded) == 0 &&
         !plan.end().HappensByItself(plan.pid) && !plan.threads()[thread.recorded].ended;
}

bool KeepsOrder(const Session& session) {
  return !session.options().is_late;
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
    while (sem_trywait(call_.semaphore) != 0) {
      const uint64_t until = LiveNs() + Stillness::kTickNs;
      const timespec deadline = AsTimespec(until);
      if (sem_clockwait(call_.semaphore, CLOCK_MONOTONIC, &deadline) == 0) break;
      if (errno == EINTR) return false;
      if (still_.IsTimeToLook()) Look("nobody gives it back");
      if (gave_up_) break;
    }
    if (Current() == number_) Advance(number_);
    return true;
  }
  [[nodiscard]] bool IsReady() const {
    const Guard guard;
    int value = 0;
    return MayTake() && sem_getvalue(call_.semaphore, &value) == 0 && value > 0;
  }

 private:
  [[nodiscard]] uint32_t Current() const { return call_.order->load(std::memory_order_acquire); }
  // Also when the order gave way behind it.
  [[nodiscard]] bool MayTake() const { return static_cast<int32_t>(Current() - number_) >= 0; }

  void Advance(uint32_t from) {
    uint32_t expected = from;
    if (call_.order->compare_exchange_strong(expected, from + 1))
      syscall(SYS_futex, call_.order, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }

  bool Wait() {
    const uint32_t current = Current();
    if (MayTake()) return true;
    const timespec tick = AsTimespec(Stillness::kTickNs);
    if (syscall(SYS_futex, call_.order, FUTEX_WAIT, current, &tick, nullptr, 0) != 0 &&
        errno == EINTR)
      return false;
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
    const std::string what = "acquisition " + std::to_string(number_ + 1) +
                             " of a semaphore waits, and nothing moves: " + why;
    if (still_.IsTimeToTell()) Say("replay: " + what);
    if (gave_up_ || !still_.IsTimeToGiveUp(patience)) return;
    gave_up_ = true;
    Diverge(session_, thread_, "sem_wait", what);
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

// An acquisition that nobody made: what it takes would be missing elsewhere. So it gets nothing as
// long as anything moves, or anybody is still to take it; where neither, after `patience`.
void WaitWithoutTurn(Stillness& still, const std::string& scratch, AcquireCall& call,
                     uint64_t patience) {
  while (!still.IsTimeToGiveUp()) {
    const timespec tick = AsTimespec(Stillness::kTickNs);
    const Guard guard;
    if (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &tick, nullptr) != 0)
      return Fail(call, EINTR);
    if (!still.IsTimeToLook()) continue;
    const bool is_missed =
        OwnerOfMeeting(scratch, call.key, call.order->load(std::memory_order_acquire)).pid != 0;
    if (!is_missed && still.ns() >= patience) break;
    if (still.IsTimeToTell())
      Say("replay: a thread takes a semaphore once more than the recorded one, and nothing moves");
  }
  call.Real();
}

// The recorded thread has made no more acquisitions.
void ServeSurplus(Session& session, ThreadState& thread, AcquireCall& call) {
  if (call.tries) return Fail(call, EAGAIN);
  if (WasKilledBefore(session, thread)) {
    const Guard guard;
    Park(session, thread, "sem_wait", 0, 0, nullptr);
  }
  Stillness still(session);
  WaitWithoutTurn(still, session.options().scratch, call, Stillness::kLeftNs);
}

// What a recorded wait had found.
class FoundReady {
 public:
  FoundReady(const PollCall& call, std::string_view found)
      : call_(call), found_(found), fits_(found.size() == call.count * sizeof(int16_t)) {}

  // It was a wait for as many descriptors.
  [[nodiscard]] bool fits() const { return fits_; }
  int16_t operator[](nfds_t i) const {
    int16_t was = 0;
    std::memcpy(&was, found_.data() + i * sizeof was, sizeof was);
    return was;
  }
  // Who reads what is not there yet waits for it, and another thread may have read what this one
  // had only seen. What does not wait, and an end, has to be there.
  [[nodiscard]] bool MustBeThere(nfds_t i) const {
    const int16_t was = fits_ ? (*this)[i] : 0;
    if (was == 0) return false;
    if ((was & (POLLIN | POLLOUT)) == 0) return true;
    const int flags = fcntl(call_.descriptors[i].fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) != 0;
  }
  [[nodiscard]] bool AreThere() const {
    if (!fits_) return call_.result > 0;
    for (nfds_t i = 0; i < call_.count; ++i)
      if (call_.descriptors[i].revents == 0 && MustBeThere(i)) return false;
    return true;
  }

 private:
  const PollCall& call_;
  std::string_view found_;
  bool fits_;
};

// False: the call is over, by an error.
bool AwaitReady(Session& session, ThreadState& thread, PollCall& call, const FoundReady& ready) {
  for (nfds_t i = 0; i < call.count; ++i) call.descriptors[i].revents = 0;
  Stillness still(session);
  const int asked_ms = call.timeout_ms;
  while (!ready.AreThere()) {
    call.timeout_ms = static_cast<int>(Stillness::kTickNs / Stillness::kMs);
    call.Real();
    call.timeout_ms = asked_ms;
    if (call.result < 0) return false;
    const Guard guard;
    if (!still.IsTimeToLook()) continue;
    if (still.IsTimeToTell())
      Say("replay: a thread waits for a pipe from which something came, and nothing moves");
    if (!still.IsTimeToGiveUp()) continue;
    Diverge(session, thread, "poll", "what came by a pipe in the recorded run does not come");
    break;
  }
  return true;
}

}  // namespace

void ServeAcquire(Session& session, ThreadState& thread, AcquireCall& call) {
  if (!KeepsOrder(session) || thread.recorded == kNone) return call.Real();
  const RecordedInput* next = Next(session, thread, LibcApi::ksem_wait, call.key);
  if (next == nullptr) return ServeSurplus(session, thread, call);
  if (next->result < 0) {
    Consume(session, thread, LibcApi::ksem_wait, call.key);
    return Fail(call, next->error);
  }
  Turn turn(session, thread, call, static_cast<uint32_t>(next->result));
  WithoutInterpreter apart(call.tries && !turn.IsReady());
  const bool taken = turn.Take();
  apart.End();
  if (!taken) return Fail(call, EINTR);
  Consume(session, thread, LibcApi::ksem_wait, call.key);
  call.result = 0;
  call.error = 0;
}

void ServeUnrecordedAcquire(const std::string& scratch, AcquireCall& call) {
  if (call.tries) return Fail(call, EAGAIN);
  Stillness still(scratch, nullptr);
  WaitWithoutTurn(still, scratch, call, Stillness::kTellNs);
}

void ServePoll(Session& session, ThreadState& thread, PollCall& call) {
  const RecordedInput* next =
      KeepsOrder(session) ? Next(session, thread, LibcApi::kpoll, 0) : nullptr;
  if (next == nullptr && KeepsOrder(session) && thread.recorded != kNone && call.timeout_ms == 0) {
    // A look that the recorded thread did not take: what it found would be missing elsewhere.
    for (nfds_t i = 0; i < call.count; ++i) call.descriptors[i].revents = 0;
    call.result = 0;
    return;
  }
  if (next == nullptr) return call.Real();
  if (next->result == 0) {
    Consume(session, thread, LibcApi::kpoll, 0);
    for (nfds_t i = 0; i < call.count; ++i) call.descriptors[i].revents = 0;
    call.result = 0;
    return;
  }
  const std::string_view found = session.plan().Bytes(next->data);
  const FoundReady ready(call, found);
  if (!AwaitReady(session, thread, call, ready)) return;
  Consume(session, thread, LibcApi::kpoll, 0);
  for (nfds_t i = 0; ready.fits() && i < call.count; ++i) call.descriptors[i].revents = ready[i];
  call.result = static_cast<int>(next->result);
}

}  // namespace deja::replayer
