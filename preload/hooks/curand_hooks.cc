#include "preload/hooks/curand_hooks.h"

#pragma GCC visibility push(default)
#include "include/compat/curand.h"
#pragma GCC visibility pop

#include "preload/api/curand_table.h"
#include "preload/curand_library.h"
#include "preload/hooks/table_hooks.h"

namespace deja::preload {
namespace {

constexpr size_t kFunctions = 0
#define DEJA_FN(id, result, name, since, klass, ...) +1
#include "preload/api/curand.def"
#undef DEJA_FN
    ;

constinit RealFunctions<kFunctions> g_real(kCurandFamily, &RealCurand);

struct CurandLibrary {
  using Api = CurandApi;
  static const ApiInfo& Info(CurandApi api) { return CurandInfo(api); }
  static void* Real(const ApiInfo& info) { return g_real.Get(info); }
  // Nothing was initialised that could be used.
  template <typename Result>
  static uint64_t Missing() {
    return static_cast<uint64_t>(CURAND_STATUS_NOT_INITIALIZED);
  }
  static void Enter(Engine& engine, Call& call) { engine.OnCurandCall(call); }
};

template <CurandApi kApi, typename Function>
using Hook = TableHook<CurandLibrary, kApi, Function>;

}  // namespace
}  // namespace deja::preload

// The hooks. The compiler checks each against the declaration in curand.h.
extern "C" {
#define DEJA_FN(id, result, name, since, klass, ...)                                          \
  result name DEJA_PARAMS(__VA_ARGS__) {                                                      \
    return deja::preload::Hook<deja::preload::CurandApi::name,                                \
                               result DEJA_TYPES(__VA_ARGS__)>::Enter DEJA_ARGS(__VA_ARGS__); \
  }                                                                                           \
  __attribute__((alias(#name), visibility("hidden")))                                         \
  result deja_hook_##name DEJA_PARAMS(__VA_ARGS__);
#include "preload/api/curand.def"
#undef DEJA_FN
}

namespace deja::preload {

void* CurandHookAddress(const ApiInfo& info) {
  // NOLINTNEXTLINE(readability-identifier-naming): a constant
  static void (*const kHooks[])() = {
#define DEJA_FN(id, result, name, since, klass, ...) \
  reinterpret_cast<void (*)()>(&deja_hook_##name),
#include "preload/api/curand.def"
#undef DEJA_FN
  };
  return reinterpret_cast<void*>(kHooks[info.id - kCurandFamily]);
}

}  // namespace deja::preload
