#include "preload/hooks/curand/curand_hooks.h"

#pragma GCC visibility push(default)
#include "include/compat/curand.h"
#include "preload/calls/call.h"
#include "preload/calls/nccl_calls.h"
#pragma GCC visibility pop

#include "api/curand_table.h"
#include "preload/hooks/table_hooks.h"
#include "preload/symbols/curand_library.h"

namespace deja::preload {
namespace {

constexpr size_t kFunctions = 0
#define DEJA_FN(id, result, name, since, klass, ...) +1
#include "api/tables/curand.def"
#undef DEJA_FN
    ;

constinit RealFunctions<kFunctions> g_real(api::kCurandFamily, &RealCurand);

struct CurandLibrary {
  using Api = api::CurandApi;
  static const api::ApiInfo& Info(api::CurandApi api) { return api::CurandInfo(api); }
  static void* Real(const api::ApiInfo& info) { return g_real.Get(info); }
  // Nothing was initialised that could be used.
  template <typename Result>
  static uint64_t Missing() {
    return static_cast<uint64_t>(CURAND_STATUS_NOT_INITIALIZED);
  }
  static void Enter(Engine& engine, Call& call) { engine.curand->OnCurandCall(call); }
};

}  // namespace
}  // namespace deja::preload

#define DEJA_TABLE_DEF "api/tables/curand.def"
#define DEJA_TABLE_LIBRARY CurandLibrary
#define DEJA_TABLE_FAMILY deja::api::kCurandFamily
#define DEJA_HOOK_ADDRESS CurandHookAddress
#include "preload/hooks/table_exports.inc"
