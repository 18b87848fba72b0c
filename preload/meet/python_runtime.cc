#include "preload/meet/python_runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "preload/symbols/real_symbols.h"

namespace deja::preload {

constinit PythonRuntime g_python_runtime;

void FindPythonRuntime() {
  void* runtime = TryDlsym(RTLD_DEFAULT, "_PyRuntime");
  if (runtime == nullptr) return;
  Dl_info info;
  void* entry = nullptr;
  if (dladdr1(runtime, &info, &entry, RTLD_DL_SYMENT) == 0 || entry == nullptr) return;
  g_python_runtime = {reinterpret_cast<uintptr_t>(runtime),
                      static_cast<ElfW(Sym)*>(entry)->st_size};
}

}  // namespace deja::preload
