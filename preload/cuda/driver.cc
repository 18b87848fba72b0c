#include "preload/cuda/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>

#include "preload/real_symbols.h"
#include "preload/spin_lock.h"

namespace deja::preload {
namespace {

constinit CudaDriver g_driver;
constinit std::atomic<bool> g_found{false};
constinit SpinLock g_looking;

template <typename Function>
bool LookUp(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(RealDlsym(library, name));
  return function != nullptr;
}

bool LookUpAll(void* library, CudaDriver& driver) {
  bool all = true;
#define DEJA_CU(name, params) all = LookUp(library, #name, driver.name) && all;
#include "preload/cuda/driver.def"
#undef DEJA_CU
  return all;
}

}  // namespace

const CudaDriver* FindCudaDriver() {
  if (g_found.load(std::memory_order_acquire)) return &g_driver;
  const int saved_errno = errno;
  // Stays open: the addresses that come from it are kept.
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (library != nullptr) {
    g_looking.Lock();
    if (!g_found.load(std::memory_order_relaxed) && LookUpAll(library, g_driver))
      g_found.store(true, std::memory_order_release);
    g_looking.Unlock();
  }
  dlerror();  // what was not found is not the program's error
  errno = saved_errno;
  return g_found.load(std::memory_order_acquire) ? &g_driver : nullptr;
}

}  // namespace deja::preload
