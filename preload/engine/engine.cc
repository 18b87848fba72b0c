#include "preload/engine/engine.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "common/env_vars.h"
#include "common/runtime/errno_keeper.h"
#include "common/runtime/own_mapping.h"
#include "common/runtime/spin_lock.h"
#include "preload/calls/life_calls.h"
#include "preload/engine/signals.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_again.h"
#include "preload/process/process_exit.h"

namespace deja::preload {
namespace {

enum State : uint32_t { kUnmade, kMaking, kMade, kOff };

constinit std::atomic<uint32_t> g_state{kUnmade};
constinit Engine g_engine{};
constinit std::atomic<bool> g_switched_off{false};
// The process that `g_engine` is for.
constinit std::atomic<long> g_pid{0};
// g_forks, when that process was entered.
constinit std::atomic<uint32_t> g_forks_seen{0};

// 1 in the process that made the engine, 0 in a child: the kernel wipes the page. A handler of
// pthread_atfork would not notice every fork, _Fork and clone. One load on the hot path.
constinit std::atomic<uint32_t> g_no_page{1};
constinit std::atomic<std::atomic<uint32_t>*> g_same_process{&g_no_page};

std::atomic<uint32_t>& SameProcess() {
  return *g_same_process.load(std::memory_order_acquire);
}

bool InSameProcess() {
  return SameProcess().load(std::memory_order_relaxed) != 0;
}

void MarkProcess(uint32_t mark) {
  SameProcess().store(mark, std::memory_order_relaxed);
}

void EnterProcess() {
  g_forks_seen.store(g_forks.load(std::memory_order_relaxed), std::memory_order_relaxed);
  g_pid.store(syscall(SYS_getpid), std::memory_order_relaxed);
  MarkProcess(1);
}

// Any number of threads may come here at once.
void MakePage() {
  if (&SameProcess() != &g_no_page) return;
  auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = MapOwn(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (page == MAP_FAILED || madvise(page, size, MADV_WIPEONFORK) != 0) {
    // Kernels before 4.14: at least fork() is noticed.
    pthread_atfork(nullptr, nullptr, [] { MarkProcess(0); });
    return;
  }
  auto* word = static_cast<std::atomic<uint32_t>*>(page);
  word->store(1, std::memory_order_relaxed);
  std::atomic<uint32_t>* expected = &g_no_page;
  if (!g_same_process.compare_exchange_strong(expected, word, std::memory_order_acq_rel))
    munmap(page, size);
}

// Before the C library has set up the environment nothing can be said yet.
bool EnvironmentIsThere() {
  return environ != nullptr;
}

bool SwitchedOn() {
  return OwnVariable(env::kOut) != nullptr || OwnVariable(env::kReplay) != nullptr;
}

// Another thread is making the engine. It may need a lock that this thread holds (the dynamic
// loader's, when this is a constructor), so the wait has an end; the call then goes unseen.
Engine* WaitForEngine() {
  ErrnoKeeper keep;
  constexpr int kSteps = 10000;
  constexpr timespec kStep{0, 100000};
  for (int i = 0; i < kSteps; ++i) {
    uint32_t state = g_state.load(std::memory_order_acquire);
    if (state == kMade) return &g_engine;
    if (state == kOff) return nullptr;
    syscall(SYS_nanosleep, &kStep, nullptr);
  }
  return nullptr;
}

Engine* Make() {
  ErrnoKeeper keep;
  Guard guard;
  EnterProcess();
  const bool made = CreateEngine(g_engine);
  g_state.store(made ? kMade : kOff, std::memory_order_release);
  if (!made) return nullptr;
  InstallCrashHandlers();
  WatchForExit();
  return &g_engine;
}

// First look of a child at the engine that it has inherited.
void EnterChild() {
  ErrnoKeeper keep;
  Guard guard;
  // _Fork and clone call no handler that counts.
  if (g_forks.load(std::memory_order_relaxed) == g_forks_seen.load(std::memory_order_relaxed))
    g_forks.fetch_add(1, std::memory_order_relaxed);
  EnterProcess();
  g_engine.life->OnForkChild();
}

}  // namespace

Engine* GetEngine() {
  uint32_t state = g_state.load(std::memory_order_acquire);
  if (state == kMade) {
    if (!InSameProcess()) EnterChild();
    return &g_engine;
  }
  if (state == kOff || InsideDeja() || !EnvironmentIsThere()) return nullptr;
  if (state == kUnmade) {
    if (!SwitchedOn()) {
      g_state.store(kOff, std::memory_order_relaxed);
      return nullptr;
    }
    ErrnoKeeper keep;
    Guard guard;
    MakePage();
  }
  // A child that was forked while another thread of the parent was making the engine.
  if (state == kMaking && !InSameProcess()) g_state.store(kUnmade, std::memory_order_relaxed);
  uint32_t expected = kUnmade;
  if (g_state.compare_exchange_strong(expected, kMaking, std::memory_order_acq_rel)) return Make();
  if (expected == kMade) return &g_engine;
  if (expected == kOff) return nullptr;
  return WaitForEngine();
}

Engine* EngineOfThisProcess() {
  if (g_state.load(std::memory_order_acquire) != kMade || !InSameProcess()) return nullptr;
  return syscall(SYS_getpid) == g_pid.load(std::memory_order_relaxed) ? &g_engine : nullptr;
}

void SwitchEngineOff() {
  g_switched_off.store(true);
  g_state.store(kOff, std::memory_order_release);
}

bool IsEngineSwitchedOff() {
  return g_switched_off.load(std::memory_order_relaxed);
}

void StaySameProcess() {
  EnterProcess();
}

bool IsBorrowedMemory() {
  const long pid = g_pid.load(std::memory_order_relaxed);
  return pid != 0 && !IsEngineSwitchedOff() && InSameProcess() && syscall(SYS_getpid) != pid;
}

}  // namespace deja::preload
