#include "preload/hooks/python/python_api.h"

#include <algorithm>
#include <utility>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/lock_calls.h"
#include "preload/calls/meeting_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/export.h"
#include "preload/meet/any_order.h"
#include "preload/process/guard.h"
#include "preload/stack/python_stack.h"

using namespace deja::preload;  // NOLINT: the entry points below are this file's only names

DEJA_EXPORT uint32_t deja_impl_python_function(const char* name, const char* file) {
  return PythonModule(name, file);
}

DEJA_EXPORT uint32_t deja_impl_python_stack(const uint32_t* functions, const uint32_t* lines,
                                            uint64_t count) {
  PythonFrames frames;
  for (uint64_t i = 0; i < std::min<uint64_t>(count, kMaxPythonFrames); ++i)
    if (functions[i] != 0) frames.push_back({functions[i], lines[i]});
  return InternPythonStack({frames.begin(), frames.size()});
}

DEJA_EXPORT uint32_t deja_impl_python_at(uint32_t stack) {
  return EnterPythonStack(stack);
}

DEJA_EXPORT void deja_impl_interpreter(void (*dump)(int, void*), void* (*state)()) {
  SetInterpreter(dump, state);
}

DEJA_EXPORT void deja_impl_interpreter_layout(const void* layout) {
  SetInterpreter(*static_cast<const PythonLayout*>(layout));
}

DEJA_EXPORT void deja_impl_threads_meet() {
  if (Engine* engine = GetEngine()) engine->locks->OnThreadsMeet();
}

DEJA_EXPORT int deja_impl_orders_loops() {
  Engine* engine = GetEngine();
  return engine != nullptr && engine->locks->OrdersLoops() ? 1 : 0;
}

DEJA_EXPORT void deja_impl_collection(int generation, int ended, int has_threads) {
  Engine* engine = EngineOfThisProcess();
  // What is finalized within a call of Deja's is no event.
  if (engine == nullptr || InsideDeja()) return;
  const Guard guard;
  const deja::ErrnoKeeper keep;
  engine->meetings->OnCollection({static_cast<uint32_t>(generation), ended != 0, has_threads != 0});
}

DEJA_EXPORT void deja_impl_collection_looks(const void*, const void*) {
  Engine* engine = EngineOfThisProcess();
  if (engine == nullptr || InsideDeja()) return;
  const Guard guard;
  const deja::ErrnoKeeper keep;
  engine->meetings->OnCollectionLooks();
}

DEJA_EXPORT int deja_impl_keep_collections(void (*collect)(int generation)) {
  Engine* engine = EngineOfThisProcess();
  if (engine == nullptr) return 0;
  const Guard guard;
  return engine->meetings->KeepsCollections(collect) ? 1 : 0;
}

DEJA_EXPORT int deja_impl_in_any_order(int in_any_order) {
  return std::exchange(t_in_any_order, in_any_order != 0) ? 1 : 0;
}
