#include "preload/meet/lock_order.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/own_mapping.h"
#include "preload/meet/python_runtime.h"
#include "preload/process/guard.h"
#include "preload/symbols/python_locks.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {

constinit std::atomic<LockOrder> g_lock_order{LockOrder::kOff};
constinit std::atomic<uint64_t>* g_lock_turns = nullptr;

namespace {

constinit std::atomic<bool> g_has_made_threads{false};

constexpr size_t kTurnBytes = format::kLockCounters * sizeof(uint64_t);

// The question whether the calling thread has Python's interpreter lock, which has an answer while
// there is an interpreter. Null without Python.
using Question = int (*)();
constinit Question g_has_interpreter = nullptr;
constinit Question g_holds_interpreter = nullptr;
// The words of the runtime state, sorted: they point to the interpreter's own locks, which threads
// take in the middle of what needs the interpreter.
constinit uintptr_t* g_python_words = nullptr;
constinit size_t g_python_word_count = 0;
// From 3.13 on threads wait for the interpreter's small locks by semaphores in their own frames.
constinit bool g_parks_threads = false;

// Once more in a forked child, where the interpreter has made new locks.
void KeepWords() {
  if (g_python_words == nullptr) {
    void* memory = MapOwn(g_python_runtime.size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (memory == MAP_FAILED) return;
    g_python_words = static_cast<uintptr_t*>(memory);
  }
  uintptr_t* words = g_python_words;
  const auto* runtime = reinterpret_cast<const uintptr_t*>(g_python_runtime.begin);
  // Small numbers are no addresses.
  constexpr uintptr_t kLeast = 1 << 16;
  size_t count = 0;
  for (size_t i = 0; i < g_python_runtime.size / sizeof(uintptr_t); ++i)
    if (runtime[i] >= kLeast) words[count++] = runtime[i];
  std::sort(words, words + count);
  g_python_word_count = count;
}

bool IsOfInterpreter(const void* semaphore) {
  return std::binary_search(g_python_words, g_python_words + g_python_word_count,
                            reinterpret_cast<uintptr_t>(semaphore));
}

void FindQuestions() {
  if (g_python_runtime.size == 0) return;
  KeepWords();
  g_holds_interpreter = reinterpret_cast<Question>(TryDlsym(RTLD_DEFAULT, "PyGILState_Check"));
  g_parks_threads = TryDlsym(RTLD_DEFAULT, "PyMutex_Lock") != nullptr;
  g_has_interpreter = reinterpret_cast<Question>(TryDlsym(RTLD_DEFAULT, "Py_IsInitialized"));
}

bool IsInOwnFrames(const void* lock) {
  constexpr uintptr_t kNear = 4096;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return reinterpret_cast<uintptr_t>(lock) - here < kNear;
}

// False: there is no memory for them.
bool ResetTurns() {
  if (g_lock_turns != nullptr) return madvise(g_lock_turns, kTurnBytes, MADV_DONTNEED) == 0;
  void* memory =
      MapOwn(kTurnBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (memory == MAP_FAILED) return false;
  g_lock_turns = static_cast<std::atomic<uint64_t>*>(memory);
  return true;
}

// libstdc++ leaves out pthread_once and locks while this says that there is one thread. A recording
// has a thread of the recorder's, and a replay has none: they would take other locks.
void ForgetSingleThread() {
  static constinit bool is_forgotten = false;  // in forked children, too
  if (std::exchange(is_forgotten, true)) return;
  if (void* flag = dlsym(RTLD_DEFAULT, "__libc_single_threaded"); flag != nullptr)
    *static_cast<char*>(flag) = 0;
}

}  // namespace

void WantLockOrder(bool wanted) {
  if (wanted) ForgetSingleThread();
  g_has_made_threads.store(false, std::memory_order_relaxed);
  g_lock_order.store(wanted ? LockOrder::kWanted : LockOrder::kOff, std::memory_order_relaxed);
}

void AskForLockOrder() {
  if (g_has_made_threads.load(std::memory_order_relaxed)) return;
  auto off = LockOrder::kOff;
  g_lock_order.compare_exchange_strong(off, LockOrder::kWanted, std::memory_order_relaxed);
}

void OnMoreThreads() {
  // With the first of them there is no other thread that could come here.
  if (g_has_made_threads.load(std::memory_order_relaxed)) return;
  g_has_made_threads.store(true, std::memory_order_relaxed);
  const ErrnoKeeper keep;
  const Guard guard;
  FindPythonRuntime();
  if (HasPython()) FindPythonLocks();
  if (g_lock_order.load(std::memory_order_relaxed) != LockOrder::kWanted) return;
  FindQuestions();
  g_lock_order.store(ResetTurns() ? LockOrder::kKept : LockOrder::kOff, std::memory_order_release);
}

bool HasPython() {
  return g_python_runtime.size != 0;
}

bool IsOrderedLock(const void* lock, format::LockUse use) {
  if (!HasPython()) return true;
  if (IsInPythonRuntime(lock)) return false;
  if (use == format::LockUse::kSemaphore)
    return !IsOfInterpreter(lock) && (!g_parks_threads || !IsInOwnFrames(lock));
  return g_holds_interpreter == nullptr || g_has_interpreter == nullptr ||
         g_has_interpreter() == 0 || g_holds_interpreter() == 0;
}

}  // namespace deja::preload
