#include "replayer/meet/lock_order.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/runtime/raw_syscall.h"
#include "preload/meet/lock_order.h"
#include "preload/process/guard.h"
#include "replayer/process/without_interpreter.h"

namespace deja::replayer {
namespace {

using format::LockReading;
using format::LockUse;
using preload::Guard;
using preload::LockCall;

constexpr uint64_t kFirstLookNs =
    2 * Stillness::kMs;  // of a replay in which threads went other ways
constexpr uint64_t kShortWaitNs = 200 * Stillness::kMs;
constexpr int kSpins = 64;
// In a process with Python: the first time, the times after it, and the most times.
constexpr uint64_t kGiveWayNs = 2'000 * Stillness::kMs;
constexpr uint64_t kGiveWayAgainNs = 400 * Stillness::kMs;
constexpr uint32_t kMostGiveWay = 16;

// Waiters of a counter are woken by their turns modulo 32.
uint32_t BitOf(uint64_t turn) {
  return uint32_t{1} << (turn & 31);
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void SleepFor(uint64_t ns) {
  const timespec span = SpanOf(ns);
  RawSyscall(SYS_nanosleep, reinterpret_cast<long>(&span), 0);
}

// The lower half of a counter, by which threads wait for it.
long WordOf(std::atomic<uint64_t>& counter) {
  return reinterpret_cast<long>(&counter);
}

// The system call in which a thread of this process is; -1: in none.
long CallOf(int tid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  char text[32] = {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  return n > 0 && text[0] >= '0' && text[0] <= '9' ? std::strtol(text, nullptr, 10) : -1;
}

// As glibc has it: its routine has run.
bool HasRun(const void* control) {
  constexpr int kDone = 2;
  return (__atomic_load_n(static_cast<const int*>(control), __ATOMIC_ACQUIRE) & kDone) != 0;
}

}  // namespace

LockOrder* LockOrder::Make(Session& session) {
  if (session.options().is_late) return nullptr;
  for (const RecordedThread& thread : session.plan().threads())
    if (!thread.locks.empty()) return new LockOrder(session);
  return nullptr;
}

LockOrder::LockOrder(Session& session)
    : session_(session), progress_(new Progress[session.plan().threads().size()]) {
  constexpr uint64_t kFew = 1 << 20;
  uint64_t readings = 0;
  for (const RecordedThread& thread : session.plan().threads()) readings += thread.locks.size();
  looks_early_ = readings < kFew;
}

void LockOrder::Serve(ThreadState& thread, LockCall& call) {
  Step step;
  if (!gave_up_.load(std::memory_order_relaxed)) {
    const Guard guard;
    step = Next(thread, call);
  }
  switch (step.kind) {
    case Step::Kind::kLive:
      return call.real(call);
    case Step::Kind::kTurn:
      return call.use == LockUse::kOnce ? RunOnce(thread, call, step)
                                        : TakeInTurn(thread, call, step);
    case Step::Kind::kOutcome:
      if (call.use == LockUse::kOnce) return AwaitRoutine(call);
      if (call.use == LockUse::kBarrier) call.real(call);
      call.result = step.reading.code;
      return;
    case Step::Kind::kEnd:
      return AwaitEnd(thread, call);
  }
}

// ---- What was recorded
// ------------------------------------------------------------------------------

void LockOrder::Pass(ThreadState& thread) {
  session_.progress().CountServed();
  LocksOf(thread).cursor->Move();
  progress_[thread.recorded].passed.store(LocksOf(thread).cursor->passed(),
                                          std::memory_order_release);
}

bool LockOrder::FindSame(ThreadState& thread, const LockCall& call) {
  LockStream::Cursor& at = *LocksOf(thread).cursor;
  const uint64_t segment = session_.progress().Segment(thread);
  // What it did before its last call, entropy or snapshot, and did not do here.
  while (at.Peek() != nullptr && at.segment() < segment) {
    deviates_.store(true, std::memory_order_relaxed);
    Pass(thread);
  }
  // By what is done and not by the lock's address: allocations of other threads come between in
  // another order.
  const auto fits = [&](const LockStream::Cursor& there) { return there.Peek()->use == call.use; };
  if (at.Peek() == nullptr || at.segment() != segment) return false;
  if (fits(at)) return true;
  constexpr int kMostLeftOut = 256;
  LockStream::Cursor ahead = at;
  for (int i = 0; i < kMostLeftOut && ahead.Peek() != nullptr && ahead.segment() == segment; ++i) {
    if (fits(ahead)) {
      deviates_.store(true, std::memory_order_relaxed);
      while (at.passed() != ahead.passed()) Pass(thread);
      return true;
    }
    ahead.Move();
  }
  return false;
}

LockOrder::Step LockOrder::Next(ThreadState& thread, const LockCall& call) {
  Step step;
  if (LocksOf(thread).is_past) return step;
  if (thread.recorded == kNone) {
    // It had done nothing when the process ended. Those without a name do not belong to the
    // program.
    if (preload::Self().name[0] != '?') step.kind = Step::Kind::kEnd;
    return step;
  }
  const RecordedThread& recorded = session_.plan().threads()[thread.recorded];
  if (LocksOf(thread).cursor == nullptr) {
    LocksOf(thread).cursor = std::make_unique<LockStream::Cursor>(&recorded.locks);
    progress_[thread.recorded].tid.store(static_cast<int>(RawSyscall(SYS_gettid)));
  }
  session_.progress().CountAttempt();
  if (!FindSame(thread, call)) {
    deviates_.store(true, std::memory_order_relaxed);
    if (LocksOf(thread).cursor->Peek() == nullptr && !recorded.ended) step.kind = Step::Kind::kEnd;
    return step;
  }
  step.reading = *LocksOf(thread).cursor->Peek();
  if (step.reading.is_turn) {
    step.kind = Step::Kind::kTurn;
    return step;
  }
  step.kind = Step::Kind::kOutcome;
  Pass(thread);
  if (call.use != LockUse::kCondition || step.reading.code != call.timed_out) return step;
  // A wait whose time was over: it ends with the mutex.
  step.result = step.reading.code;
  const LockReading* next = LocksOf(thread).cursor->Peek();
  if (next == nullptr || !next->is_turn || next->use != LockUse::kCondition) {
    step.kind = Step::Kind::kEnd;
    return step;
  }
  step.kind = Step::Kind::kTurn;
  step.reading = *next;
  return step;
}

// ---- Calls
// ------------------------------------------------------------------------------------------

bool LockOrder::IsReady(const LockCall& call, const LockReading& reading) {
  const Guard guard;
  int value = 0;
  // The program's memory is written, too, but for what the C library keeps there.
  auto* semaphore = static_cast<sem_t*>(const_cast<void*>(call.lock));
  return preload::TurnsOf(reading.counter).load(std::memory_order_acquire) >= reading.turn &&
         sem_getvalue(semaphore, &value) == 0 && value > 0;
}

void LockOrder::TakeInTurn(ThreadState& thread, LockCall& call, const Step& step) {
  if (call.use == LockUse::kCondition) call.give_back(call);
  WithoutInterpreter apart(call.use == LockUse::kSemaphore && preload::HasPython() &&
                           !IsReady(call, step.reading));
  AwaitTurn(thread, step.reading);
  call.take(call);
  apart.End();
  if (call.result == 0) call.result = step.result;
  Advance(step.reading.counter, step.reading.turn, step.reading.turn + 1);
  Pass(thread);
}

void LockOrder::RunOnce(ThreadState& thread, LockCall& call, const Step& step) {
  AwaitTurn(thread, step.reading);
  LocksOf(thread).runs_in_turn = true;
  call.real(call);
  if (!call.runs) BeginOnce(thread, call);  // another thread has run it
}

void LockOrder::BeginOnce(ThreadState& thread, LockCall& call) {
  call.runs = true;
  if (!std::exchange(LocksOf(thread).runs_in_turn, false)) return;
  const LockReading reading = *LocksOf(thread).cursor->Peek();
  Advance(reading.counter, reading.turn, reading.turn + 1);
  Pass(thread);
}

void LockOrder::AwaitRoutine(LockCall& call) {
  Stillness still(session_);
  Pauses pauses(Stillness::kMs / 10);
  while (!HasRun(call.lock) && !gave_up_.load(std::memory_order_relaxed)) {
    pauses.Next();
    if (still.IsTimeToLook() && still.ns() >= Stillness::kLeftNs && !OneSleeps(true)) break;
  }
  call.real(call);
}

void LockOrder::AwaitEnd(ThreadState& thread, LockCall& call) {
  const bool waits = call.use == LockUse::kCondition;
  if (waits) call.give_back(call);
  WithoutInterpreter apart(call.use == LockUse::kSemaphore && preload::HasPython());
  Stillness still(session_);
  while (!gave_up_.load(std::memory_order_relaxed)) {
    SleepFor(Stillness::kTickNs);
    if (!still.IsTimeToLook()) continue;
    if (OneSleeps(true)) still.SetMoved();
    if (still.ns() >= Stillness::kLeftNs) break;
  }
  LocksOf(thread).is_past = true;
  if (waits)
    call.take(call);  // as if woken for no reason
  else
    call.real(call);
  apart.End();
}

// ---- Turns
// ------------------------------------------------------------------------------------------

void LockOrder::Wake(uint16_t counter, uint32_t turns) {
  std::atomic<uint64_t>& word = preload::TurnsOf(counter);
  if (waiters_[counter % kWaiterSlots].load(std::memory_order_seq_cst) == 0) return;
  RawSyscall(SYS_futex, WordOf(word), FUTEX_WAKE_BITSET_PRIVATE, INT32_MAX, 0, 0,
             static_cast<long>(turns));
}

void LockOrder::Advance(uint16_t counter, uint64_t from, uint64_t to) {
  if (!preload::TurnsOf(counter).compare_exchange_strong(from, to, std::memory_order_seq_cst))
    return;  // it was passed over
  Wake(counter, to == from + 1 ? BitOf(to) : FUTEX_BITSET_MATCH_ANY);
}

void LockOrder::AwaitTurn(ThreadState& thread, const LockReading& reading) {
  std::atomic<uint64_t>& counter = preload::TurnsOf(reading.counter);
  for (int i = 0; i < kSpins; ++i) {
    if (counter.load(std::memory_order_acquire) >= reading.turn) return;
    Pause();
  }
  AwaitTurnLong(thread, reading);
}

void LockOrder::AwaitTurnLong(ThreadState& thread, const LockReading& reading) {
  std::atomic<uint64_t>& counter = preload::TurnsOf(reading.counter);
  std::atomic<uint32_t>& waiters = waiters_[reading.counter % kWaiterSlots];
  std::atomic<bool>& waits = progress_[thread.recorded].waits;
  waits.store(true, std::memory_order_relaxed);
  Stillness still(session_);
  uint64_t waited = 0;
  for (uint64_t ticks = 0; !gave_up_.load(std::memory_order_relaxed); ++ticks) {
    const bool deviates = looks_early_ && (deviates_.load(std::memory_order_relaxed) ||
                                           session_.progress().IsAnyHeld());
    uint64_t tick = ticks < 10 ? Stillness::kTickNs : 10 * Stillness::kTickNs;
    if (deviates && ticks < 10) tick = kFirstLookNs;
    waiters.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t current = counter.load(std::memory_order_seq_cst);
    if (current < reading.turn) {
      const uint64_t until = MonotonicNs() + tick;
      const timespec deadline = SpanOf(until);
      RawSyscall(SYS_futex, WordOf(counter), FUTEX_WAIT_BITSET_PRIVATE,
                 static_cast<long>(static_cast<uint32_t>(current)),
                 reinterpret_cast<long>(&deadline), 0, static_cast<long>(BitOf(reading.turn)));
    }
    waiters.fetch_sub(1, std::memory_order_relaxed);
    const uint64_t now = counter.load(std::memory_order_acquire);
    if (now >= reading.turn) break;
    waited = now == current ? waited + tick : 0;
    if (waited < (deviates ? kFirstLookNs : kShortWaitNs)) continue;
    const Guard guard;
    const uint32_t owner = PassOver(reading.counter, now);
    if (owner != kNone && session_.progress().IsAnyHeld()) session_.progress().Want(owner);
    if (owner != kNone && still.IsTimeToLook()) Look(thread, reading, owner, still);
  }
  waits.store(false, std::memory_order_relaxed);
}

// ---- Threads that come, and threads that do not
// ----------------------------------------------------------------------

const std::vector<LockOrder::Owner>& LockOrder::OwnersOf(uint16_t counter) {
  const auto [it, is_new] = owners_.try_emplace(counter);
  if (!is_new) return it->second;
  const auto& threads = session_.plan().threads();
  for (uint32_t thread = 0; thread < threads.size(); ++thread) {
    LockStream::Cursor at(&threads[thread].locks);
    for (; at.Peek() != nullptr; at.Move())
      if (at.Peek()->is_turn && at.Peek()->counter == counter)
        it->second.push_back({at.Peek()->turn, at.passed(), thread});
  }
  std::sort(it->second.begin(), it->second.end(),
            [](const Owner& a, const Owner& b) { return a.turn < b.turn; });
  return it->second;
}

bool LockOrder::HasPassed(const Owner& owner) const {
  const Progress& progress = progress_[owner.thread];
  return progress.ended.load(std::memory_order_acquire) ||
         progress.passed.load(std::memory_order_acquire) > owner.reading;
}

uint32_t LockOrder::PassOver(uint16_t counter, uint64_t current) {
  owners_mutex_.lock();
  const std::vector<Owner>& owners = OwnersOf(counter);
  auto owner = std::lower_bound(owners.begin(), owners.end(), current,
                                [](const Owner& a, uint64_t turn) { return a.turn < turn; });
  while (owner != owners.end() && HasPassed(*owner)) ++owner;
  const uint64_t turn = owner == owners.end() ? format::kMaxLockTurn + 1 : owner->turn;
  const uint32_t thread = turn == current ? owner->thread : kNone;
  owners_mutex_.unlock();
  if (turn != current) Advance(counter, current, turn);
  return thread;
}

bool LockOrder::OneSleeps(bool any) const {
  const Guard guard;
  const auto& threads = session_.plan().threads();
  for (size_t i = 0; i < threads.size(); ++i) {
    const int tid = progress_[i].tid.load(std::memory_order_relaxed);
    if (tid == 0 || progress_[i].ended.load(std::memory_order_relaxed)) continue;
    if (!any && progress_[i].passed.load(std::memory_order_relaxed) >= threads[i].locks.size())
      continue;
    // Not ourselves, in AwaitEnd: that is SYS_nanosleep.
    if (CallOf(tid) == SYS_clock_nanosleep) return true;
  }
  return false;
}

bool LockOrder::AllWait() const {
  const Guard guard;
  const auto self = static_cast<int>(RawSyscall(SYS_gettid));
  const size_t count = session_.plan().threads().size();
  for (size_t i = 0; i < count; ++i) {
    const int tid = progress_[i].tid.load(std::memory_order_relaxed);
    if (tid == 0 || tid == self || progress_[i].ended.load(std::memory_order_relaxed)) continue;
    const long call = CallOf(tid);
    if (call != SYS_futex && call != SYS_nanosleep) return false;
  }
  return true;
}

bool LockOrder::GiveWay(const LockReading& reading, uint32_t owner, const Stillness& still) {
  if (!preload::HasPython()) return false;
  const bool is_first = gave_way_.load(std::memory_order_relaxed) == 0;
  uint64_t patience = is_first ? kGiveWayNs : kGiveWayAgainNs;
  // Whose turn it is waits for a turn of his own: that one comes first, unless they go in a circle.
  if (progress_[owner].waits.load(std::memory_order_relaxed)) patience *= 2;
  if (still.ns() < patience || !AllWait()) return false;
  const uint32_t before = gave_way_.fetch_add(1);
  if (before == 0)
    Say(std::string("replay: thread ") + preload::Self().name + " goes on without its turn at a " +
        format::LockUseName(reading.use) + ", since thread " +
        std::string(session_.plan().threads()[owner].name) +
        ", whose turn it is, does not come: which thread Python's interpreter lets run is not "
        "recorded; what follows may differ");
  if (before + 1 == kMostGiveWay) {
    Say("replay: threads have gone on without their turns " + std::to_string(kMostGiveWay) +
        " times; from here on they take locks in any order");
    gave_up_.store(true);
  }
  session_.progress().CountActivity();
  const uint64_t current = preload::TurnsOf(reading.counter).load(std::memory_order_acquire);
  if (current < reading.turn) Advance(reading.counter, current, reading.turn);
  return true;
}

void LockOrder::Look(ThreadState& thread, const LockReading& reading, uint32_t owner,
                     Stillness& still) {
  if (session_.progress().IsNeeded()) return still.SetMoved();
  if (GiveWay(reading, owner, still)) return;
  const std::string what = std::string("thread ") + preload::Self().name +
                           " waits for its turn at a " + format::LockUseName(reading.use) +
                           ", and nothing moves: it is the turn of thread " +
                           std::string(session_.plan().threads()[owner].name);
  if (still.IsTimeToTell()) Say("replay: " + what);
  if (!still.IsTimeToGiveUp()) return;
  if (OneSleeps(false)) return still.SetMoved();
  if (gave_up_.exchange(true)) return;
  Divergence divergence = session_.divergences().New(DivergenceKind::kCall);
  divergence.api = format::LockUseName(reading.use);
  divergence.what = what + "; from here on threads take locks in any order";
  session_.divergences().Diverge(thread, std::move(divergence), 0);
}

void LockOrder::EndThread(const ThreadState& thread) {
  if (thread.recorded == kNone) return;
  Progress& progress = progress_[thread.recorded];
  progress.ended.store(true, std::memory_order_release);
  if (progress.passed.load() < session_.plan().threads()[thread.recorded].locks.size())
    deviates_.store(true, std::memory_order_relaxed);
}

void LockOrder::Renumber(int (*new_number)(int tid)) {
  for (size_t i = 0; i < session_.plan().threads().size(); ++i)
    progress_[i].tid.store(new_number(progress_[i].tid.load()));
}

}  // namespace deja::replayer
