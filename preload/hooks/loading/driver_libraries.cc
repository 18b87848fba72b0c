#include "preload/hooks/loading/driver_libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "common/env_vars.h"
#include "common/runtime/errno_keeper.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "preload/stack/modules.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constexpr std::string_view kLibraries[] = {"libcuda.so", "libcudadebugger.so", "libnvidia-",
                                           "libcupti.so", "libdxcore.so"};

constexpr std::string_view kForDriversToo[] = {
    "dlopen",       "dlsym",       "fork",          "_Fork",     "vfork",      "posix_spawn",
    "posix_spawnp", "system",      "popen",         "pclose",    "wait",       "waitpid",
    "wait3",        "wait4",       "waitid",        "execve",    "execv",      "execvp",
    "execvpe",      "execl",       "execlp",        "execle",    "fexecve",    "execveat",
    "_exit",        "_Exit",       "quick_exit",    "sigaction", "signal",     "bsd_signal",
    "ssignal",      "sysv_signal", "__sysv_signal", "sigset",    "sigaltstack"};

// A library of a driver, as the loader describes it.
struct Library {
  uint64_t base = 0;
  uint64_t end = 0;
  uint64_t read_only = 0;  // pages that the loader has closed to writing, once they were filled
  uint64_t read_only_end = 0;
  const ElfW(Dyn) * dynamic = nullptr;
  char path[512] = {};
  // One of the places that were changed: a library that was loaded again has its original entries.
  std::atomic<void*>* changed = nullptr;
  void* changed_to = nullptr;
};

constexpr size_t kMost = 32;

// Those that were set apart. Entries are never taken back, only used for the same path again.
Library g_apart[kMost];
std::atomic<size_t> g_count{0};
std::atomic<uint64_t> g_looked_at{0};  // objects that were loaded when it was last looked
std::atomic<bool> g_looking{false};

struct Scan {
  Library found[kMost];
  size_t count = 0;
};

int OnObject(dl_phdr_info* info, size_t, void* context) {
  auto& scan = *static_cast<Scan*>(context);
  const char* path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const size_t size = std::strlen(path);
  if (!IsDriverLibrary(path) || size >= sizeof Library::path || scan.count == kMost) return 0;
  Library& library = scan.found[scan.count++];
  library.base = info->dlpi_addr;
  std::memcpy(library.path, path, size + 1);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uint64_t at = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) library.end = std::max(library.end, at + part.p_memsz);
    if (part.p_type == PT_DYNAMIC) library.dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
    if (part.p_type != PT_GNU_RELRO) continue;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    library.read_only = at / page * page;
    library.read_only_end = (at + part.p_memsz) / page * page;
  }
  return 0;
}

// What a library imports.
struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  struct Table {
    const ElfW(Rela) * first = nullptr;
    size_t bytes = 0;
  } tables[2];
};

Imports ImportsOf(const Library& library) {
  Imports imports;
  for (const ElfW(Dyn)* at = library.dynamic; at != nullptr && at->d_tag != DT_NULL; ++at) {
    // The loader has relocated these in place on most machines, not on all.
    uint64_t address = at->d_un.d_ptr;
    if (address < library.base) address += library.base;
    switch (at->d_tag) {
      case DT_SYMTAB:
        imports.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
        break;
      case DT_STRTAB:
        imports.names = reinterpret_cast<const char*>(address);
        break;
      case DT_RELA:
        imports.tables[0].first = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_RELASZ:
        imports.tables[0].bytes = at->d_un.d_val;
        break;
      case DT_JMPREL:
        imports.tables[1].first = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_PLTRELSZ:
        imports.tables[1].bytes = at->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return imports;
}

// The function that a library gets in the place of our hook; null: it keeps what it has.
void* Replacement(const char* name) {
  if (IsForDriversToo(name) || !IsOwnAddress(RealDlsym(RTLD_DEFAULT, name))) return nullptr;
  return RealNext(name);
}

void Change(Library& library, std::atomic<void*>* place, void* to) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uint64_t>(place);
  const bool closed = at >= library.read_only && at < library.read_only_end;
  void* start = reinterpret_cast<void*>(at / page * page);
  if (closed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
  place->store(to, std::memory_order_release);
  if (closed) mprotect(start, page, PROT_READ);
  library.changed = place;
  library.changed_to = to;
}

void SetApart(Library& library) {
  const Imports imports = ImportsOf(library);
  if (imports.symbols == nullptr || imports.names == nullptr) return;
  for (const Imports::Table& table : imports.tables) {
    const size_t count = table.first == nullptr ? 0 : table.bytes / sizeof(ElfW(Rela));
    for (size_t i = 0; i < count; ++i) {
      const ElfW(Rela)& entry = table.first[i];
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) continue;
      const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(entry.r_info)];
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
      if (void* to = Replacement(imports.names + symbol.st_name))
        Change(library, reinterpret_cast<std::atomic<void*>*>(library.base + entry.r_offset), to);
    }
  }
}

// What is known of a library at this path; null: nothing yet, and there is no room for more.
Library* Known(const char* path) {
  const size_t count = g_count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i)
    if (std::strcmp(g_apart[i].path, path) == 0) return &g_apart[i];
  return count < kMost ? &g_apart[count] : nullptr;
}

void Enter(const Library& found) {
  Library* known = Known(found.path);
  if (known == nullptr) return;
  if (known->base == found.base && known->changed != nullptr &&
      known->changed->load(std::memory_order_relaxed) == known->changed_to)
    return;
  // Not unloaded meanwhile.
  void* handle = dlopen(found.path, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return;
  Library fresh;
  fresh.base = found.base;
  fresh.read_only = found.read_only;
  fresh.read_only_end = found.read_only_end;
  fresh.dynamic = found.dynamic;
  SetApart(fresh);
  dlclose(handle);
  known->base = found.base;
  known->end = found.end;
  known->changed = fresh.changed;
  known->changed_to = fresh.changed_to;
  std::memcpy(known->path, found.path, sizeof known->path);
  if (known == &g_apart[g_count.load(std::memory_order_relaxed)])
    g_count.fetch_add(1, std::memory_order_release);
}

// A driver that the program is linked to makes its calls before anybody opens anything.
__attribute__((constructor)) void SetLinkedDriversApart() {
  if (OwnVariable(env::kOut) == nullptr && OwnVariable(env::kReplay) == nullptr) return;
  const Guard guard;
  // A thread of the parent may be looking.
  pthread_atfork(nullptr, nullptr, [] { g_looking.store(false, std::memory_order_relaxed); });
  SetDriversApart();
}

}  // namespace

bool IsDriverLibrary(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return std::any_of(std::begin(kLibraries), std::end(kLibraries),
                     [path](std::string_view name) { return path.starts_with(name); });
}

bool IsForDriversToo(std::string_view name) {
  return std::find(std::begin(kForDriversToo), std::end(kForDriversToo), name) !=
         std::end(kForDriversToo);
}

bool IsDriverCode(const void* code) {
  const auto at = reinterpret_cast<uint64_t>(code);
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i)
    if (at >= g_apart[i].base && at < g_apart[i].end) return true;
  return false;
}

void SetDriversApart() {
  const uint64_t loaded = ObjectsLoaded();
  if (loaded == g_looked_at.load(std::memory_order_acquire)) return;
  // Whoever else is at it has what this thread has loaded, or leaves it to the next look.
  if (g_looking.exchange(true, std::memory_order_acquire)) return;
  const ErrnoKeeper keep;
  static Scan scan;  // too large for a stack
  scan.count = 0;
  dl_iterate_phdr(&OnObject, &scan);
  for (size_t i = 0; i < scan.count; ++i) Enter(scan.found[i]);
  dlerror();  // what was not found is not the program's error
  g_looked_at.store(loaded, std::memory_order_release);
  g_looking.store(false, std::memory_order_release);
}

}  // namespace deja::preload
