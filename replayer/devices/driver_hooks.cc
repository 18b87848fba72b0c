#include "replayer/devices/driver_hooks.h"

#include <dlfcn.h>

#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"
#include "replayer/turns/turns.h"

namespace deja::replayer {
namespace {

constexpr uint64_t kPerThreadFlag = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

enum Streams { kAny, kLegacy, kPerThread };

struct Hook {
  const char* name;
  const char* symbol;
  int since;
  Streams streams;
  void* function;
};
const Hook kHooks[] = {
#define DEJA_CU_HOOK(name, symbol, since, streams, params) \
  {#name, #symbol, since, streams, reinterpret_cast<void*>(&::name)},
#define DEJA_CU_RETRY(name, symbol, since, streams, params, args) \
  DEJA_CU_HOOK(name, symbol, since, streams, params)
#include "replayer/devices/driver_hooks.def"
#undef DEJA_CU_RETRY
#undef DEJA_CU_HOOK
};

const Hook* FindHook(const char* name) {
  if (name == nullptr || std::strncmp(name, "cu", 2) != 0) return nullptr;
  for (const Hook& hook : kHooks)
    if (std::strcmp(hook.name, name) == 0) return &hook;
  return nullptr;
}

}  // namespace

void* RealDriver(const char* name) {
  preload::Guard guard;
  const ErrnoKeeper keep;
  void* found = preload::RealNext(name);
  if (found == nullptr)
    if (void* library = preload::OpenLoaded("libcuda.so.1"))
      found = preload::RealDlsym(library, name);
  if (found == nullptr) dlerror();  // what was not found is not the program's error
  return found;
}

// By cuGetProcAddress one name is several functions, which differ in their parameters: the newest
// one that both the program and the driver know.
void* HookForSymbol(const char* symbol, int version, uint64_t flags) {
  if (symbol == nullptr || !MapsDevices()) return nullptr;
  const Hook* found = nullptr;
  for (const Hook& hook : kHooks) {
    if (std::strcmp(hook.symbol, symbol) != 0 || hook.since > version ||
        (found != nullptr && hook.since < found->since))
      continue;
    const bool per_thread = (flags & kPerThreadFlag) != 0;
    if (hook.streams != kAny && (hook.streams == kPerThread) != per_thread) continue;
    if (RealDriver(hook.name) != nullptr) found = &hook;
  }
  return found == nullptr ? nullptr : found->function;
}

}  // namespace deja::replayer

namespace deja::preload {

// What dlsym gives the program for a function of the driver; null: the driver's own.
void* DriverHook(const char* name) {
  if (!replayer::MapsDevices()) return nullptr;
  const replayer::Hook* hook = replayer::FindHook(name);
  return hook == nullptr ? nullptr : hook->function;
}

bool IsMissingInDriver(const char* name) {
  return replayer::FindHook(name) != nullptr && replayer::RealDriver(name) == nullptr;
}

}  // namespace deja::preload
