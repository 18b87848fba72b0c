// Each function has two names, MPI_X and PMPI_X: tools wrap the first and call the second, and
// Fortran's wrappers call the second, too. Both are hooked, each in front of the real one of that
// name; whichever the program reaches first holds the guard, so that a call is one event.
#include "preload/hooks/mpi/mpi_hooks.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "api/mpi_table.h"
#include "api/mpi_types.h"
#include "api/table.h"
#include "preload/calls/call.h"
#include "preload/calls/input_calls.h"
#include "preload/calls/mpi_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/table_hooks.h"
#include "preload/process/guard.h"
#include "preload/symbols/mpi_library.h"

namespace deja::preload {
namespace {

constexpr size_t kFunctions = 0
#define DEJA_FN(id, result, name, since, klass, ...) +1
#include "api/tables/mpi.def"
#undef DEJA_FN
    ;

constinit std::atomic<void*> g_real[2][kFunctions] = {};

void* RealFunction(const api::ApiInfo& info, bool second) {
  std::atomic<void*>& slot = g_real[second ? 1 : 0][info.id - api::kMpiFamily];
  void* real = slot.load(std::memory_order_acquire);
  if (real != nullptr) return real;
  char name[64] = "P";
  const size_t n = strnlen(info.name, sizeof name - 2);
  std::memcpy(name + 1, info.name, n);
  real = RealMpi(second ? name : name + 1);
  if (real != nullptr) slot.store(real, std::memory_order_release);
  return real;
}

template <bool kSecond, typename Function>
struct Hook;

template <bool kSecond, typename... Args>
struct Hook<kSecond, int(Args...)> {
  static int Enter(api::MpiApi api, const Args&... args) {
    Call call;
    call.info = &api::MpiInfo(api);
    call.invoke = &Invoke;
    MakeCall(
        call, [](Engine& engine, Call& c) { engine.mpi->OnMpiCall(c); }, args...);
    return api::FromWord<int>(call.result);
  }

 private:
  static void Invoke(Call& call) { InvokeWith(call, std::index_sequence_for<Args...>{}); }

  template <size_t... kIndex>
  static void InvokeWith(Call& call, std::index_sequence<kIndex...>) {
    auto real = reinterpret_cast<int (*)(Args...)>(RealFunction(*call.info, kSecond));
    if (real == nullptr) {
      call.result = api::ToWord(TheMpiAbi().error_other);
      return;
    }
    Guard guard;  // what MPI calls inside itself, and its threads, are not the program's
    call.result = api::ToWord(real(api::FromWord<Args>(call.args[kIndex])...));
  }
};

// MPI's clock: an input like the C library's.
template <bool kSecond>
struct Hook<kSecond, double()> {
  static double Enter(api::MpiApi api) {
    double value = 0;
    Engine* engine = InsideDeja() ? nullptr : GetEngine();
    if (engine == nullptr) return Read(api);
    InputCall call;
    call.api = static_cast<uint32_t>(api);
    call.out = {reinterpret_cast<std::byte*>(&value), sizeof value};
    call.real = [](InputCall& c, void*) {
      const double now = Read(static_cast<api::MpiApi>(c.api));
      std::memcpy(c.out.data(), &now, sizeof now);
      c.produced = sizeof now;
    };
    Guard guard;
    engine->inputs->OnInput(call);
    return value;
  }

 private:
  static double Read(api::MpiApi api) {
    auto real = reinterpret_cast<double (*)()>(RealFunction(api::MpiInfo(api), kSecond));
    Guard guard;
    return real == nullptr ? 0 : real();
  }
};

}  // namespace
}  // namespace deja::preload

namespace deja::mpi_types {

extern "C" {
#define DEJA_FN(id, result, name, since, klass, ...)                               \
  __attribute__((visibility("default"))) result name DEJA_PARAMS(__VA_ARGS__) {    \
    return deja::preload::Hook<false, result DEJA_TYPES(__VA_ARGS__)>::Enter(      \
        deja::api::MpiApi::k##name __VA_OPT__(, )                                  \
            DEJA_FOR_EACH_COMMA(DEJA_PARAM_NAME, __VA_ARGS__));                    \
  }                                                                                \
  __attribute__((visibility("default"))) result P##name DEJA_PARAMS(__VA_ARGS__) { \
    return deja::preload::Hook<true, result DEJA_TYPES(__VA_ARGS__)>::Enter(       \
        deja::api::MpiApi::k##name __VA_OPT__(, )                                  \
            DEJA_FOR_EACH_COMMA(DEJA_PARAM_NAME, __VA_ARGS__));                    \
  }                                                                                \
  __attribute__((alias(#name), visibility("hidden")))                              \
  result deja_hook_##name DEJA_PARAMS(__VA_ARGS__);                                \
  __attribute__((alias("P" #name), visibility("hidden")))                          \
  result deja_hook_P##name DEJA_PARAMS(__VA_ARGS__);
#include "api/tables/mpi.def"
#undef DEJA_FN
}

}  // namespace deja::mpi_types

namespace deja::preload {

void* MpiHookAddress(const api::ApiInfo& info, bool second) {
  // NOLINTNEXTLINE(readability-identifier-naming): a constant
  static void (*const kHooks[][2])() = {
#define DEJA_FN(id, result, name, since, klass, ...)                 \
  {reinterpret_cast<void (*)()>(&deja::mpi_types::deja_hook_##name), \
   reinterpret_cast<void (*)()>(&deja::mpi_types::deja_hook_P##name)},
#include "api/tables/mpi.def"
#undef DEJA_FN
  };
  return reinterpret_cast<void*>(kHooks[info.id - api::kMpiFamily][second ? 1 : 0]);
}

}  // namespace deja::preload
