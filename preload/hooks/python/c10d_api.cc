#include "preload/hooks/python/c10d_api.h"

#include <string_view>

#include "api/c10d_table.h"
#include "api/table.h"
#include "common/runtime/errno_keeper.h"
#include "preload/calls/call.h"
#include "preload/calls/group_calls.h"
#include "preload/calls/life_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/export.h"
#include "preload/hooks/python/group_operations.h"
#include "preload/process/guard.h"

namespace deja::preload {
namespace {

std::string_view TextOf(const char* data, uint64_t size) {
  return data == nullptr ? std::string_view() : std::string_view(data, size);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the entry points below are this file's only names

DEJA_EXPORT int deja_impl_mode() {
  Engine* engine = GetEngine();
  return engine == nullptr ? 0 : static_cast<int>(engine->groups->ModeOfGroups());
}

DEJA_EXPORT int deja_impl_in_real_call() {
  return IsInRealCall() ? 1 : 0;
}

DEJA_EXPORT void deja_impl_library(int begin) {
  if (begin != 0)
    ++t_guard_depth;
  else if (t_guard_depth != 0)
    --t_guard_depth;
}

DEJA_EXPORT int deja_impl_store(deja_store_call* call, void (*real)(void*), void* context) {
  const deja::api::ApiInfo* info = deja::api::FindC10d(std::string_view(call->function));
  Engine* engine = EngineForGroups();
  if (engine == nullptr || info == nullptr || call->size != sizeof *call) {
    real(context);
    return 0;
  }
  const deja::ErrnoKeeper keep;
  struct Invocation : StoreCall {
    void (*real)(void*);
    void* context;
    deja_store_call* passed;
  } made;
  made.info = info;
  made.real = real;
  made.context = context;
  made.passed = call;
  made.key = TextOf(call->key, call->key_size);
  made.of_rank = call->of_rank != 0;
  made.invoke = [](Call& c) {
    auto& self = static_cast<Invocation&>(c);
    Guard guard;
    self.real(self.context);
    self.value = TextOf(self.passed->value, self.passed->value_size);
    self.result = self.passed->failed != 0 ? 1 : 0;
  };
  {
    Guard guard;
    engine->groups->OnStoreCall(made);
  }
  if (made.answer == AnswerFrom::kReal) return 0;
  call->failed = made.result != 0 ? 1 : 0;
  call->value = made.value.data();
  call->value_size = made.value.size();
  return made.answer == AnswerFrom::kServed ? 1 : -1;
}

DEJA_EXPORT void deja_impl_not_recorded(const char* what, int may_be) {
  Engine* engine = EngineForGroups();
  if (engine == nullptr || what == nullptr) return;
  Guard guard;
  engine->life->OnNotRecorded(what, may_be != 0, "");
}
