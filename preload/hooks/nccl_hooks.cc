#include "preload/hooks/nccl_hooks.h"

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <atomic>
#include <type_traits>
#include <utility>

#include "preload/api/nccl_table.h"
#include "preload/api/table.h"
#include "preload/engine.h"
#include "preload/guard.h"
#include "preload/process_exit.h"
#include "preload/real_symbols.h"

namespace deja::preload {
namespace {

constexpr size_t kFunctions = 0
#define DEJA_FN(id, result, name, since, klass, ...) +1
#include "preload/api/nccl.def"
#undef DEJA_FN
    ;

constinit std::atomic<void*> g_real[kFunctions] = {};

void* RealFunction(const ApiInfo& info) {
  std::atomic<void*>& slot = g_real[info.id - kNcclFamily];
  void* real = slot.load(std::memory_order_acquire);
  if (real == nullptr) {
    real = RealNccl(info.name);
    if (real != nullptr) slot.store(real, std::memory_order_release);
  }
  return real;
}

// What a program gets when it calls into an NCCL that is not there.
template <typename Result>
uint64_t MissingResult() {
  if constexpr (std::is_same_v<Result, const char*>) {
    return ToWord<const char*>("deja: no NCCL library is loaded that has this function");
  } else {
    return static_cast<uint64_t>(ncclSystemError);
  }
}

template <NcclApi kApi, typename Function>
struct Hook;

template <NcclApi kApi, typename Result, typename... Args>
struct Hook<kApi, Result(Args...)> {
  static void Invoke(Call& call) { InvokeWith(call, std::index_sequence_for<Args...>{}); }

  static Result Enter(const Args&... args) {
    Call call;
    call.info = &NcclInfo(kApi);
    call.invoke = &Invoke;
    size_t i = 0;
    ((call.args[i++] = ToWord(args)), ...);
    (void)i;  // a function without parameters
    Engine* engine = InsideDeja() ? nullptr : GetEngine();
    if (engine == nullptr) {
      Invoke(call);
    } else {
      Guard guard;
      WatchForExitInMain();
      engine->OnNcclCall(call);
    }
    if constexpr (!std::is_void_v<Result>) return FromWord<Result>(call.result);
  }

 private:
  template <size_t... kIndex>
  static void InvokeWith(Call& call, std::index_sequence<kIndex...>) {
    auto real = reinterpret_cast<Result (*)(Args...)>(RealFunction(*call.info));
    if (real == nullptr) {
      call.result = MissingResult<Result>();
      return;
    }
    Guard guard;  // what NCCL calls inside itself, and its threads, are not the program's
    if constexpr (std::is_void_v<Result>) {
      real(FromWord<Args>(call.args[kIndex])...);
      call.result = 0;
    } else {
      call.result = ToWord(real(FromWord<Args>(call.args[kIndex])...));
    }
  }
};

}  // namespace
}  // namespace deja::preload

// The hooks. The compiler checks each against the declaration in nccl.h.
extern "C" {
#define DEJA_FN(id, result, name, since, klass, ...)                                          \
  result name DEJA_PARAMS(__VA_ARGS__) {                                                      \
    return deja::preload::Hook<deja::preload::NcclApi::name,                                  \
                               result DEJA_TYPES(__VA_ARGS__)>::Enter DEJA_ARGS(__VA_ARGS__); \
  }                                                                                           \
  __attribute__((alias(#name), visibility("hidden")))                                         \
  result deja_hook_##name DEJA_PARAMS(__VA_ARGS__);
#include "preload/api/nccl.def"
#undef DEJA_FN
}

namespace deja::preload {

void* NcclHookAddress(const ApiInfo& info) {
  // NOLINTNEXTLINE(readability-identifier-naming): a constant
  static void (*const kHooks[])() = {
#define DEJA_FN(id, result, name, since, klass, ...) \
  reinterpret_cast<void (*)()>(&deja_hook_##name),
#include "preload/api/nccl.def"
#undef DEJA_FN
  };
  return reinterpret_cast<void*>(kHooks[info.id - kNcclFamily]);
}

}  // namespace deja::preload
