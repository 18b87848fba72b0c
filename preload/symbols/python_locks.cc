#include "preload/symbols/python_locks.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <semaphore.h>

#include <utility>

#include "preload/symbols/real_symbols.h"

namespace deja::preload {

constinit PythonLocks g_python_locks;
constinit thread_local uintptr_t t_reading_frame = 0;
constinit thread_local bool t_reading_is_live = false;
constinit thread_local uintptr_t t_reading_caller = 0;

namespace {

// The segment of a module that the function is in.
PythonCode CodeAround(const void* function) {
  PythonCode code{reinterpret_cast<uintptr_t>(function), 0};
  const auto find = [](dl_phdr_info* info, size_t, void* out) {
    auto& found = *static_cast<PythonCode*>(out);
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

// Builds of one version differ, by the C library that they were made for. So a lock is taken. It is
// a semaphore in 3.9 to 3.13; a later version finds that it cannot have it.
bool DoesTakingReadClock(void* function) {
  using Take = int (*)(void* lock, long long microseconds, int intr_flag);
  sem_t lock;
  if (sem_init(&lock, 0, 1) != 0) return false;
  t_reading_frame = 0;
  reinterpret_cast<Take>(function)(&lock, 0, 0);
  sem_destroy(&lock);
  return t_reading_frame != 0;
}

PythonCode CodeOf(const void* function) {
  Dl_info info;
  void* entry = nullptr;
  if (dladdr1(function, &info, &entry, RTLD_DL_SYMENT) == 0 || entry == nullptr) return {};
  return {reinterpret_cast<uintptr_t>(function), static_cast<ElfW(Sym)*>(entry)->st_size};
}

// Where the function's call of the clock's hook returns to.
uintptr_t ReaderIn(void* function) {
  int64_t ns = 0;
  t_reading_caller = 0;
  reinterpret_cast<int (*)(int64_t*)>(function)(&ns);
  return t_reading_caller;
}

// A compiler may have given both functions one call.
uintptr_t FindRawReader() {
  void* raw = TryDlsym(RTLD_DEFAULT, "PyTime_MonotonicRaw");
  void* of_program = TryDlsym(RTLD_DEFAULT, "PyTime_Monotonic");
  if (raw == nullptr || of_program == nullptr) return 0;
  const uintptr_t reader = ReaderIn(raw);
  return CodeOf(raw).Has(reader) && ReaderIn(of_program) != reader ? reader : 0;
}

}  // namespace

void FindPythonLocks() {
  g_python_locks.raw_reader = FindRawReader();
  void* take = TryDlsym(RTLD_DEFAULT, "PyThread_acquire_lock_timed");
  if (take != nullptr && (g_python_locks.raw_reader != 0 || DoesTakingReadClock(take)))
    g_python_locks.interpreter = CodeAround(take);
}

}  // namespace deja::preload
