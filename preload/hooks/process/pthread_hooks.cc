// Threads: names by creation order, guards that are inherited, and when a thread ends.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <threads.h>

#include <atomic>
#include <cerrno>

#include "preload/calls/life_calls.h"
#include "preload/engine/engine.h"
#include "preload/engine/signals.h"
#include "preload/hooks/export.h"
#include "preload/hooks/loading/driver_libraries.h"
#include "preload/meet/lock_order.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "preload/stack/stack.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>
    real_pthread_create{"pthread_create"};
constinit RealFn<int (*)(thrd_t*, thrd_start_t, void*)> real_thrd_create{"thrd_create"};

// What a new thread needs to know.
struct Start {
  void* (*posix)(void*) = nullptr;
  thrd_start_t c11 = nullptr;
  void* argument = nullptr;
  ThreadRecord* record = nullptr;  // null: not a thread of the program
};

// Between pthread_create and the first moments of the thread. Not from malloc, which the program
// may have replaced by one that is not up to it here.
constexpr size_t kSlots = 1024;
Start g_slots[kSlots];
std::atomic<bool> g_busy[kSlots];

Start* ClaimStart() {
  for (size_t i = 0; i < kSlots; ++i)
    if (!g_busy[i].load(std::memory_order_relaxed) &&
        !g_busy[i].exchange(true, std::memory_order_acquire))
      return &g_slots[i];
  return nullptr;
}

void ReleaseStart(Start* start) {
  g_busy[start - g_slots].store(false, std::memory_order_release);
}

// A thread's end, however it comes (return, pthread_exit, cancellation): the destructor of a key
// runs on the thread. It puts itself off to the last round of destructors, since those of the
// program may still make calls.
constinit std::atomic<uint32_t> g_key_state{0};  // 0 none, 1 being made, 2 there
pthread_key_t g_key;
constexpr uintptr_t kRounds = PTHREAD_DESTRUCTOR_ITERATIONS;

void OnKeyDestroyed(void* value) {
  auto round = reinterpret_cast<uintptr_t>(value);
  if (round < kRounds && pthread_setspecific(g_key, reinterpret_cast<void*>(round + 1)) == 0)
    return;
  if (IsEngineSwitchedOff()) return;
  // A thread that was cancelled inside a hook never left it.
  t_guard_depth = 0;
  if (Engine* engine = GetEngine()) {
    Guard guard;
    engine->life->OnThreadEnd();
    EndThreadStacks();
  }
  TakeAlternateStackBack();
}

bool HaveKey() {
  uint32_t state = g_key_state.load(std::memory_order_acquire);
  if (state == 2) return true;
  if (state == 0 && g_key_state.compare_exchange_strong(state, 1, std::memory_order_acq_rel)) {
    bool made = pthread_key_create(&g_key, &OnKeyDestroyed) == 0;
    g_key_state.store(made ? 2 : 0, std::memory_order_release);
    return made;
  }
  return g_key_state.load(std::memory_order_acquire) == 2;
}

Start EnterThread(void* argument) {
  auto* shared = static_cast<Start*>(argument);
  Start start = *shared;
  ReleaseStart(shared);
  if (start.record == nullptr) {
    // Born inside Deja or the real library, and part of it for good.
    ++t_guard_depth;
    // A request to end that is meant for the process is taken by a thread of the program.
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, nullptr);
    return start;
  }
  SetSelf(start.record);
  Engine* engine = GetEngine();
  if (engine == nullptr) return start;
  if (HaveKey()) pthread_setspecific(g_key, reinterpret_cast<void*>(uintptr_t{1}));
  GiveAlternateStack();
  Guard guard;
  engine->life->OnThreadStart();
  return start;
}

// Nothing with a destructor lives across the program's routine: pthread_exit and cancellation
// unwind through these frames.
void* PosixThread(void* argument) {
  Start start = EnterThread(argument);
  return start.posix(start.argument);
}

int C11Thread(void* argument) {
  Start start = EnterThread(argument);
  return start.c11(start.argument);
}

// Sets up the start of a thread; null if the real function must be called as it is.
Start* PrepareStart() {
  Start* start = ClaimStart();
  if (start == nullptr) return nullptr;
  *start = Start{};
  if (InsideDeja()) return start;
  (void)GetEngine();  // the first hook may be this one
  ThreadRecord* record = NewThreadRecord();
  if (record == nullptr) {
    ReleaseStart(start);
    return nullptr;
  }
  NameChild(Self(), *record);
  start->record = record;
  OnMoreThreads();
  return start;
}

// The first thing that is seen of a driver that came as a dependency of something the program
// opened.
bool IsFromDriver(const void* caller) {
  if (InsideDeja()) return false;
  const Guard guard;
  SetDriversApart();
  return IsDriverCode(caller);
}

void TakeBack(Start* start) {
  if (start->record != nullptr) --Self().children;
  ReleaseStart(start);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                               void* (*routine)(void*), void* argument) noexcept {
  Start* start = IsFromDriver(__builtin_return_address(0)) ? nullptr : PrepareStart();
  if (start == nullptr) return real_pthread_create(thread, attributes, routine, argument);
  start->posix = routine;
  start->argument = argument;
  int rc = real_pthread_create(thread, attributes, &PosixThread, start);
  if (rc != 0) TakeBack(start);
  return rc;
}

DEJA_EXPORT int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  Start* start = PrepareStart();
  if (start == nullptr) return real_thrd_create(thread, routine, argument);
  start->c11 = routine;
  start->argument = argument;
  int rc = real_thrd_create(thread, &C11Thread, start);
  if (rc != thrd_success) TakeBack(start);
  return rc;
}
