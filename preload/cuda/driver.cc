#include "preload/cuda/driver.h"

#include <dlfcn.h>

#include <atomic>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/spin_lock.h"
#include "preload/stack/modules.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit CudaDriver g_driver;
constinit std::atomic<bool> g_found{false};
// How many objects had been loaded when it was last looked for in vain. Looking means to search all
// folders of libraries.
constinit std::atomic<uint64_t> g_missed_at{0};
constinit SpinLock g_looking;

template <typename Function>
bool LookUp(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(RealDlsym(library, name));
  return function != nullptr;
}

bool LookUpAll(void* library, CudaDriver& driver) {
  bool all = true;
#define DEJA_CU(name, params) all = LookUp(library, #name, driver.name) && all;
#define DEJA_CU_OPTIONAL(name, params) LookUp(library, #name, driver.name);
#include "preload/cuda/driver.def"
#undef DEJA_CU_OPTIONAL
#undef DEJA_CU
  return all;
}

}  // namespace

const CudaDriver* FindCudaDriver() {
  if (g_found.load(std::memory_order_acquire)) return &g_driver;
  const uint64_t loaded = ObjectsLoaded();
  if (loaded == g_missed_at.load(std::memory_order_relaxed)) return nullptr;
  const ErrnoKeeper keep;
  // Stays open: the addresses that come from it are kept.
  void* library = OpenLoaded("libcuda.so.1");
  if (library != nullptr) {
    g_looking.Lock();
    if (!g_found.load(std::memory_order_relaxed) && LookUpAll(library, g_driver))
      g_found.store(true, std::memory_order_release);
    g_looking.Unlock();
  }
  dlerror();  // what was not found is not the program's error
  if (g_found.load(std::memory_order_acquire)) return &g_driver;
  g_missed_at.store(loaded, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace deja::preload
