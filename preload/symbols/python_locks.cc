#include "preload/symbols/python_locks.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <semaphore.h>

#include "preload/symbols/real_symbols.h"

namespace deja::preload {

constinit PythonLockCode g_python_lock_code;
constinit thread_local uintptr_t t_reading_frame = 0;

namespace {

// The segment of a module that the function is in.
PythonLockCode FindCodeAround(const void* function) {
  PythonLockCode code{reinterpret_cast<uintptr_t>(function), 0};
  const auto find = [](dl_phdr_info* info, size_t, void* out) {
    auto& found = *static_cast<PythonLockCode*>(out);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_LOAD || found.begin - begin >= segment.p_memsz) continue;
      found = {begin, segment.p_memsz};
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(find, &code);
  return code;
}

}  // namespace

// Builds of one version differ, by the C library that they were made for. So a lock is taken. It is
// a semaphore in 3.9 to 3.13; a later version finds that it cannot have it.
void FindPythonLockCode() {
  using TakeLock = int (*)(void* lock, long long microseconds, int intr_flag);
  void* function = TryDlsym(RTLD_DEFAULT, "PyThread_acquire_lock_timed");
  sem_t lock;
  if (function == nullptr || sem_init(&lock, 0, 1) != 0) return;
  t_reading_frame = 0;
  reinterpret_cast<TakeLock>(function)(&lock, 0, 0);
  sem_destroy(&lock);
  if (t_reading_frame != 0) g_python_lock_code = FindCodeAround(function);
}

}  // namespace deja::preload
