// What a library needs, besides the hooks, to be taken for NCCL: the second names and the functions
// that Deja does not record. Linked into the replay library only: while recording, pncclX is how
// the real library is reached.
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <atomic>
#include <cstdint>
#include <cstring>

#include "api/table.h"
#include "preload/hooks/input.h"
#include "preload/hooks/nccl/newer_calls.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

// "libnccl.so", "libnccl.so.2", "libnccl.so.2.28.9", in any folder. A plug-in's "libnccl-net.so" is
// none of them.
bool NamesNccl(const char* file) {
  constexpr char kName[] = "libnccl.so";
  const char* slash = std::strrchr(file, '/');
  const char* base = slash != nullptr ? slash + 1 : file;
  size_t n = sizeof kName - 1;
  return std::strncmp(base, kName, n) == 0 && (base[n] == 0 || base[n] == '.');
}

}  // namespace

bool StandsInForNccl() {
  return true;
}

}  // namespace deja::preload

extern "C" {
#define DEJA_FN(id, result, name, since, klass, ...)                                      \
  __attribute__((visibility("hidden"))) result deja_hook_##name DEJA_PARAMS(__VA_ARGS__); \
  result p##name DEJA_PARAMS(__VA_ARGS__) {                                               \
    return deja_hook_##name DEJA_ARGS(__VA_ARGS__);                                       \
  }
#include "api/tables/nccl.def"
#undef DEJA_FN

// Whatever the arguments: "not here". Functions that return a small structure return one in the
// same registers.
#define DEJA_FORWARD(name, since, because)                        \
  __attribute__((visibility("default"))) uint64_t name(void) {    \
    return ncclInvalidUsage;                                      \
  }                                                               \
  __attribute__((visibility("default"))) uint64_t p##name(void) { \
    return ncclInvalidUsage;                                      \
  }
#include "api/tables/nccl_forwarded.def"
#undef DEJA_FORWARD
}

// Functions of a newer NCCL lead here (cli/replay/start/newer_nccl.h).
extern "C" __attribute__((visibility("default"))) uint64_t deja_newer_nccl_call(const char* name) {
  namespace dp = deja::preload;
  if (dp::Engine* engine = dp::EngineForHook(); engine != nullptr) {
    const dp::Guard guard;
    dp::SayNewerCall(*engine, name, true);
  }
  return ncclInvalidUsage;
}

// Returns the dlopen to jump to. A program that opens NCCL by its path gets this library, whose
// SONAME this is, whether the file exists or not.
extern "C" __attribute__((visibility("hidden"))) void* deja_dlopen_decide(const char** file) {
  static constinit std::atomic<void*> next{nullptr};
  void* target = next.load(std::memory_order_acquire);
  if (target == nullptr) {
    target = deja::preload::RealNext("dlopen");
    next.store(target, std::memory_order_release);
  }
  if (*file != nullptr && deja::preload::NamesNccl(*file)) *file = "libnccl.so.2";
  return target;
}
