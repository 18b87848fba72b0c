// TableHook: what an exported hook does that is expanded from a row of an API's table.
//
// The library's part is a class with
//   Api                                   the enumeration of the table's ids
//   static const ApiInfo& Info(Api)
//   static void* Real(const ApiInfo&)     the real function, or null
//   static uint64_t Missing<Result>()     what a call returns that has none behind it
//   static void Enter(Engine&, Call&)     hands the call over
// Any thread; no allocation.
#ifndef DEJA_PRELOAD_HOOKS_TABLE_HOOKS_H_
#define DEJA_PRELOAD_HOOKS_TABLE_HOOKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "api/table.h"
#include "preload/calls/call.h"
#include "preload/engine/engine.h"
#include "preload/process/guard.h"
#include "preload/process/process_exit.h"

namespace deja::preload {

// The real functions of a table, each looked up once it is called. In static memory.
template <size_t kFunctions>
class RealFunctions {
 public:
  // `family`: id of the table's first row.
  constexpr RealFunctions(uint32_t family, void* (*find)(const char* name))
      : family_(family), find_(find) {}

  // The real function of a row; null if no library has it. Any thread.
  void* Get(const api::ApiInfo& info) {
    std::atomic<void*>& slot = slots_[info.id - family_];
    void* real = slot.load(std::memory_order_acquire);
    if (real == nullptr) {
      real = find_(info.name);
      if (real != nullptr) slot.store(real, std::memory_order_release);
    }
    return real;
  }

 private:
  const uint32_t family_;
  void* (*const find_)(const char* name);
  std::atomic<void*> slots_[kFunctions] = {};
};

// Makes a call of the program whose `info` and `invoke` are set: enter(engine, call) does, with the
// guard held; where there is no engine, or Deja itself calls, it is made as if Deja were not there.
template <typename Enter, typename... Args>
void MakeCall(Call& call, Enter enter, const Args&... args) {
  size_t i = 0;
  ((call.args[i++] = api::ToWord(args)), ...);
  (void)i;  // a function without parameters
  Engine* engine = InsideDeja() ? nullptr : GetEngine();
  if (engine == nullptr) {
    call.invoke(call);
    return;
  }
  Guard guard;
  enter(*engine, call);
}

template <typename Library, typename Library::Api kApi, typename Function>
struct TableHook;

template <typename Library, typename Library::Api kApi, typename Result, typename... Args>
struct TableHook<Library, kApi, Result(Args...)> {
  static void Invoke(Call& call) { InvokeWith(call, std::index_sequence_for<Args...>{}); }

  static Result Enter(const Args&... args) {
    Call call;
    call.info = &Library::Info(kApi);
    call.invoke = &Invoke;
    MakeCall(
        call,
        [](Engine& engine, Call& c) {
          WatchForExitInMain();
          Library::Enter(engine, c);
        },
        args...);
    if constexpr (!std::is_void_v<Result>) return api::FromWord<Result>(call.result);
  }

 private:
  template <size_t... kIndex>
  static void InvokeWith(Call& call, std::index_sequence<kIndex...>) {
    auto real = reinterpret_cast<Result (*)(Args...)>(Library::Real(*call.info));
    if (real == nullptr) {
      call.result = Library::template Missing<Result>();
      return;
    }
    Guard guard;  // what the library calls inside itself, and its threads, are not the program's
    if constexpr (std::is_void_v<Result>) {
      real(api::FromWord<Args>(call.args[kIndex])...);
      call.result = 0;
    } else {
      call.result = api::ToWord(real(api::FromWord<Args>(call.args[kIndex])...));
    }
  }
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_TABLE_HOOKS_H_
