#include "preload/symbols/opened_library.h"

#include <dlfcn.h>

#include "common/runtime/errno_keeper.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
void* OpenedLibrary::FindIn(const char* name) {
  if (void* found = LookUpForeign(RTLD_NEXT, name)) return found;
  if (void* handle = handle_.load(std::memory_order_acquire)) return LookUpForeign(handle, name);
  for (const char* file : files_) {
    void* handle = OpenLoaded(file);
    if (handle == nullptr) continue;
    void* expected = nullptr;
    if (!handle_.compare_exchange_strong(expected, handle)) handle = expected;
    return LookUpForeign(handle, name);
  }
  return nullptr;
}

void* OpenedLibrary::Find(const char* name) {
  const ErrnoKeeper keep;
  void* found = FindIn(name);
  dlerror();  // what was not found is not the program's error
  return found;
}

void OpenedLibrary::Remember(void* handle, const char* name) {
  const ErrnoKeeper keep;
  Dl_info info;
  if (void* found = LookUpForeign(handle, name); found != nullptr && dladdr(found, &info) != 0) {
    // A reference of our own: the program may close its handle.
    void* own = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    void* expected = nullptr;
    if (own != nullptr) handle_.compare_exchange_strong(expected, own);
  }
  dlerror();
}

}  // namespace deja::preload
