#include "preload/hooks/nccl/nccl_hooks.h"

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <cstddef>
#include <type_traits>

#include "api/nccl_table.h"
#include "preload/calls/call.h"
#include "preload/calls/nccl_calls.h"
#include "preload/hooks/nccl/newer_calls.h"
#include "preload/hooks/table_hooks.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constexpr size_t kFunctions = 0
#define DEJA_FN(id, result, name, since, klass, ...) +1
#include "api/tables/nccl.def"
#undef DEJA_FN
    ;

constinit RealFunctions<kFunctions> g_real(api::kNcclFamily, &RealNccl);

static_assert(api::kNewestNccl == NCCL_VERSION_CODE);
static_assert(api::kProfilerTagOffset == offsetof(ncclCollConfig_t, userProfilerTag));

struct NcclLibrary {
  using Api = api::NcclApi;
  static const api::ApiInfo& Info(api::NcclApi api) { return api::NcclInfo(api); }
  static void* Real(const api::ApiInfo& info) { return g_real.Get(info); }
  // What a program gets when it calls into an NCCL that is not there.
  template <typename Result>
  static uint64_t Missing() {
    if constexpr (std::is_same_v<Result, const char*>) {
      return api::ToWord<const char*>("deja: no NCCL library is loaded that has this function");
    } else {
      return static_cast<uint64_t>(ncclSystemError);
    }
  }
  static void Enter(Engine& engine, Call& call) {
    const api::ApiClass klass = call.info->klass;
    if (klass == api::ApiClass::kLifecycle || klass == api::ApiClass::kQuery) WatchNewerCalls();
    engine.nccl->OnNcclCall(call);
  }
};

}  // namespace
}  // namespace deja::preload

#define DEJA_TABLE_DEF "api/tables/nccl.def"
#define DEJA_TABLE_LIBRARY NcclLibrary
#define DEJA_TABLE_FAMILY deja::api::kNcclFamily
#define DEJA_HOOK_ADDRESS NcclHookAddress
#include "preload/hooks/table_exports.inc"
