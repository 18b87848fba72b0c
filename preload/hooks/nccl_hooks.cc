#include "preload/hooks/nccl_hooks.h"

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <type_traits>

#include "preload/api/nccl_table.h"
#include "preload/hooks/table_hooks.h"
#include "preload/real_symbols.h"

namespace deja::preload {
namespace {

constexpr size_t kFunctions = 0
#define DEJA_FN(id, result, name, since, klass, ...) +1
#include "preload/api/nccl.def"
#undef DEJA_FN
    ;

constinit RealFunctions<kFunctions> g_real(kNcclFamily, &RealNccl);

struct NcclLibrary {
  using Api = NcclApi;
  static const ApiInfo& Info(NcclApi api) { return NcclInfo(api); }
  static void* Real(const ApiInfo& info) { return g_real.Get(info); }
  // What a program gets when it calls into an NCCL that is not there.
  template <typename Result>
  static uint64_t Missing() {
    if constexpr (std::is_same_v<Result, const char*>) {
      return ToWord<const char*>("deja: no NCCL library is loaded that has this function");
    } else {
      return static_cast<uint64_t>(ncclSystemError);
    }
  }
  static void Enter(Engine& engine, Call& call) { engine.OnNcclCall(call); }
};

template <NcclApi kApi, typename Function>
using Hook = TableHook<NcclLibrary, kApi, Function>;

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
