#include "preload/hooks/python/exception_api.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>
#include <utility>
#include <vector>

#include "common/runtime/clock_ns.h"
#include "common/runtime/errno_keeper.h"
#include "preload/hooks/export.h"
#include "preload/process/guard.h"

namespace deja::preload {
namespace {

using Dealloc = void (*)(void*);
using Clear = int (*)(void*);

// Nested deaths beyond it wait. CPython's own limit is that of a type whose deallocator is its own.
constexpr uint32_t kDeepest = 50;
// The collector of garbage may run in `tell`, and the program's exceptions die by it. A limit,
// since `tell` raises and catches exceptions itself.
constexpr uint32_t kNestedTells = 2;
constexpr size_t kSets = 256;
constexpr size_t kWaysOfSet = 4;
constexpr int64_t kBurst = 64;  // reported at once
constexpr int64_t kRefillNs = 100'000'000;

template <typename T>
T& At(void* object, uint64_t offset) {
  return *reinterpret_cast<T*>(static_cast<std::byte*>(object) + offset);
}

// The lower half, which is all of it since 3.14.
uint32_t& References(void* object) {
  return At<uint32_t>(object, 0);
}

// The functions that caught and raised an exception.
struct Way {
  void* catcher = nullptr;
  void* raiser = nullptr;
  bool is_ignored = false;  // keeps references to both
  int64_t allowed = kBurst;
  int64_t refilled_ns = 0;
  uint64_t used = 0;  // at which of all uses
};

// What a type had before.
struct Original {
  void* type;
  Dealloc dealloc;
  Clear clear;
};

// All of it under the lock of one interpreter. Never destroyed: exceptions die until the process
// ends. Those of other interpreters, which share the types, read the layout and the originals only.
struct Watch {
  deja_exception_layout layout;
  void* tell = nullptr;
  void* interpreter = nullptr;      // that of `tell`
  std::vector<Original> originals;  // sorted by type
  std::array<std::array<Way, kWaysOfSet>, kSets> ways;
  uint64_t uses = 0;
};

constinit Watch* g_watch = nullptr;
constinit bool g_has_ended = false;
constinit thread_local uint32_t t_depth __attribute__((tls_model("initial-exec"))) = 0;
// Exceptions whose death waits for the outermost one's; null: none. Not on the stack: a finalizer
// may switch to another one, as greenlets do.
constinit thread_local std::vector<void*>* t_waiting __attribute__((tls_model("initial-exec"))) =
    nullptr;
constinit thread_local uint32_t t_tells __attribute__((tls_model("initial-exec"))) = 0;

const Original* OriginalOf(const Watch& watch, void* exception) {
  for (void* type = At<void*>(exception, watch.layout.type); type != nullptr;
       type = At<void*>(type, watch.layout.base)) {
    const auto it = std::lower_bound(watch.originals.begin(), watch.originals.end(), type,
                                     [](const Original& one, void* key) { return one.type < key; });
    if (it != watch.originals.end() && it->type == type) return &*it;
  }
  return nullptr;
}

int64_t Now() {
  const Guard guard;
  return static_cast<int64_t>(ClockNs(CLOCK_MONOTONIC_COARSE));
}

bool IsOf(const Way& way, void* catcher, void* raiser) {
  return way.catcher == catcher && way.raiser == raiser;
}

// That way; else the one of its set that was used longest ago.
Way& WayOf(Watch& watch, void* catcher, void* raiser) {
  const size_t hash =
      (reinterpret_cast<size_t>(catcher) >> 4) * 31 + (reinterpret_cast<size_t>(raiser) >> 4);
  auto& set = watch.ways[hash % kSets];
  Way* oldest = set.data();
  for (Way& way : set) {
    if (IsOf(way, catcher, raiser)) return way;
    if (way.used < oldest->used) oldest = &way;
  }
  return *oldest;
}

// Whether an exception that took that way is reported now. A way that takes the place of another
// one takes what that may report: ways that take turns report no more than one does.
bool IsAllowed(Watch& watch, Way& way, void* catcher, void* raiser) {
  way.used = ++watch.uses;
  if (!IsOf(way, catcher, raiser)) {
    if (way.is_ignored) watch.layout.Py_DecRef(way.catcher), watch.layout.Py_DecRef(way.raiser);
    if (way.catcher == nullptr) way.refilled_ns = Now();
    way.catcher = catcher;
    way.raiser = raiser;
    way.is_ignored = false;
  }
  if (way.is_ignored) return false;
  if (way.allowed == 0) {
    const int64_t now = Now();
    way.allowed = std::min((now - way.refilled_ns) / kRefillNs, kBurst);
    if (way.allowed == 0) return false;
    way.refilled_ns = now;
  }
  --way.allowed;
  return true;
}

// As PyErr_Fetch gives it.
struct Error {
  void* type = nullptr;
  void* value = nullptr;
  void* traceback = nullptr;
};

int RaiseInProgram(void* raised) {
  auto* error = static_cast<Error*>(raised);
  g_watch->layout.PyErr_Restore(error->type, error->value, error->traceback);
  delete error;
  return -1;
}

// A handler of a signal has raised it, which has run between two bytecodes of `tell`. Or the stack
// is full, and `tell` has not begun.
void RaiseLater(Watch& watch) {
  Error raised;
  watch.layout.PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
  auto* error = new Error(raised);
  const bool is_of_program = raised.type != watch.layout.RecursionError;
  if (is_of_program && watch.layout.Py_AddPendingCall(&RaiseInProgram, error) == 0) return;
  RaiseInProgram(error);  // the caller drops it
}

// The program's own error, if one is set, and errno stay as they are.
void TellWay(Watch& watch, void* exception, void* traceback) {
  const ErrnoKeeper keep;
  const deja_exception_layout& py = watch.layout;
  void* innermost = traceback;
  while (void* next = At<void*>(innermost, py.next)) innermost = next;
  void* const outer = At<void*>(traceback, py.frame);
  void* const inner = At<void*>(innermost, py.frame);
  // The collector of garbage has cleared them.
  if (outer == nullptr || inner == nullptr) return;
  void* const catcher = py.PyFrame_GetCode(outer);
  void* const raiser = py.PyFrame_GetCode(inner);
  bool keeps_codes = false;
  if (IsAllowed(watch, WayOf(watch, catcher, raiser), catcher, raiser)) {
    void *type, *value, *trace;
    py.PyErr_Fetch(&type, &value, &trace);
    void* said =
        py.PyObject_CallFunctionObjArgs(watch.tell, traceback, At<void*>(exception, py.type),
                                        At<void*>(exception, py.args), nullptr);
    // Other threads have run meanwhile.
    Way& way = WayOf(watch, catcher, raiser);
    if (said != nullptr && py.PyObject_IsTrue(said) == 1 && IsOf(way, catcher, raiser) &&
        !way.is_ignored)
      way.is_ignored = keeps_codes = true;
    if (said != nullptr)
      py.Py_DecRef(said);
    else
      RaiseLater(watch);
    py.PyErr_Restore(type, value, trace);
  }
  if (!keeps_codes) py.Py_DecRef(catcher), py.Py_DecRef(raiser);
}

// Whether it was raised, and `tell` may be called.
bool IsToBeTold(const Watch& watch, void* exception) {
  return At<void*>(exception, watch.layout.traceback) != nullptr &&
         At<void*>(exception, watch.layout.args) != nullptr && t_tells < kNestedTells &&
         !g_has_ended && watch.layout.PyInterpreterState_Get() == watch.interpreter;
}

// The caller holds a reference to the exception.
void Tell(Watch& watch, void* exception) {
  ++t_tells;
  TellWay(watch, exception, At<void*>(exception, watch.layout.traceback));
  --t_tells;
}

// While `tell` runs the exception is alive for the collector of garbage. False: it is alive still.
bool TellDeath(Watch& watch, void* exception) {
  if (!IsToBeTold(watch, exception)) return true;
  References(exception) = 1;
  Tell(watch, exception);
  if (--References(exception) == 0) return true;
  // Another thread has found it among all objects. The deallocator of its type, which has called
  // this one, gives up a reference to the type.
  watch.layout.Py_IncRef(At<void*>(exception, watch.layout.type));
  return false;
}

void Die(Watch& watch, void* exception) {
  if (const Original* original = OriginalOf(watch, exception)) original->dealloc(exception);
}

// What replaces a deallocator. An exception that was raised while another one was handled keeps
// that one: such a chain may be longer than the stack.
void OnDeath(void* exception) {
  Watch& watch = *g_watch;
  if (t_depth >= kDeepest) {
    References(exception) = 1;
    watch.layout.Py_IncRef(At<void*>(exception, watch.layout.type));
    if (t_waiting == nullptr) t_waiting = new std::vector<void*>;
    t_waiting->push_back(exception);
    return;
  }
  ++t_depth;
  if (TellDeath(watch, exception)) Die(watch, exception);
  while (t_depth == 1 && t_waiting != nullptr && !t_waiting->empty()) {
    void* const next = t_waiting->back();
    t_waiting->pop_back();
    void* const type = At<void*>(next, watch.layout.type);
    if (--References(next) != 0) continue;
    Die(watch, next);
    watch.layout.Py_DecRef(type);
  }
  if (--t_depth == 0) delete std::exchange(t_waiting, nullptr);
}

// What replaces the function by which the collector of garbage breaks cycles. An exception that a
// variable of its own frame keeps has no traceback any more when it dies.
int OnClear(void* exception) {
  Watch& watch = *g_watch;
  if (IsToBeTold(watch, exception)) Tell(watch, exception);
  const Original* original = OriginalOf(watch, exception);
  return original != nullptr ? original->clear(exception) : 0;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the entry points below are this file's only names

DEJA_EXPORT void deja_impl_watch_exceptions(const deja_exception_layout* layout, void* const* types,
                                            uint64_t count, void* tell) {
  if (g_watch != nullptr) return;
  auto* watch = new Watch;
  watch->layout = *layout;
  watch->tell = tell;
  watch->interpreter = layout->PyInterpreterState_Get();
  layout->Py_IncRef(tell);
  for (uint64_t i = 0; i < count; ++i)
    watch->originals.push_back(
        {types[i], At<Dealloc>(types[i], layout->dealloc), At<Clear>(types[i], layout->clear)});
  std::sort(watch->originals.begin(), watch->originals.end(),
            [](const Original& one, const Original& other) { return one.type < other.type; });
  g_watch = watch;
  for (const Original& original : watch->originals) {
    At<Dealloc>(original.type, layout->dealloc) = &OnDeath;
    At<Clear>(original.type, layout->clear) = &OnClear;
  }
}

DEJA_EXPORT void deja_impl_exceptions_end() {
  g_has_ended = true;
}
