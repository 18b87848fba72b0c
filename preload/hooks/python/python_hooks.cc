// A starting Python interpreter finds Deja's side of PyTorch (python/) because that folder is in
// front of PYTHONPATH for it. The variable itself stays the program's own, for all other readers
// and for a look through the environment.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "common/env_vars.h"
#include "common/runtime/errno_keeper.h"
#include "preload/hooks/export.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<char* (*)(const char*)> real_getenv{"getenv"};
constinit RealFn<void* (*)(const char*, int)> real_dlopen{"dlopen"};
// The last text that was made. An interpreter asks once or twice, and another one may still read an
// earlier text, so no text is freed.
constinit std::atomic<char*> g_told{nullptr};

// True if the code at `address` belongs to the executable or library that holds an interpreter, and
// that interpreter has not started yet.
bool IsStartingInterpreter(const void* address) {
  Dl_info caller{};
  if (dladdr(address, &caller) == 0 || caller.dli_fname == nullptr) return false;
  void* object = real_dlopen(caller.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (object == nullptr) object = real_dlopen(nullptr, RTLD_LAZY);  // argv[0] is not a path
  void* is_initialized = object == nullptr ? nullptr : RealDlsym(object, "Py_IsInitialized");
  (void)dlerror();
  Dl_info found{};
  return is_initialized != nullptr && dladdr(is_initialized, &found) != 0 &&
         found.dli_fbase == caller.dli_fbase && reinterpret_cast<int (*)()>(is_initialized)() == 0;
}

char* WithOurFolder(const char* folder, char* old) {
  const bool alone = old == nullptr || *old == '\0';
  const size_t folder_size = std::strlen(folder);
  const size_t old_size = alone ? 0 : std::strlen(old) + 1;
  auto* text = static_cast<char*>(std::malloc(folder_size + old_size + 1));
  if (text == nullptr) return old;
  std::memcpy(text, folder, folder_size + 1);
  if (!alone) {
    text[folder_size] = ':';
    std::memcpy(text + folder_size + 1, old, old_size);
  }
  g_told.store(text, std::memory_order_relaxed);
  return text;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hook below is this file's only name

DEJA_EXPORT char* getenv(const char* name) noexcept {
  char* value = real_getenv(name);
  // What Deja itself has loaded (the loopback library, for a replay that computes) asks like this.
  if (value == nullptr && name[0] == 'D' && InsideDeja() && OwnVariablesAreHidden())
    return const_cast<char*>(OwnVariableNamed(name));
  if (name[0] != 'P' || std::strcmp(name, "PYTHONPATH") != 0) return value;
  const char* folder = OwnVariable(deja::env::kPython);
  if (folder == nullptr || *folder == '\0') return value;
  const deja::ErrnoKeeper keep;
  if (IsStartingInterpreter(__builtin_return_address(0))) value = WithOurFolder(folder, value);
  return value;
}
