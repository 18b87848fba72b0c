#include "preload/symbols/real_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/raw_syscall.h"
#include "preload/symbols/quiet_lookups.h"

// The bounds of this library's image, from the linker.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

namespace deja::preload {
namespace {

using DlsymFn = void* (*)(void*, const char*);

constinit std::atomic<void*> g_libc_dlsym{nullptr};
constinit std::atomic<void*> g_next_dlsym{nullptr};
// A handle of our own to the NCCL that the program opened by itself.
constinit std::atomic<void*> g_nccl_handle{nullptr};
// Where the NCCL in use is loaded: a program with a second copy keeps that to itself.
constinit std::atomic<void*> g_nccl_base{nullptr};

// ---- the C library's dlsym
// ------------------------------------------------------------------------- dlsym is what we hook,
// and dlvsym may be hooked by others, so the symbol table is read directly.

struct SymbolTables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* old_hash = nullptr;  // of libraries that have no other
  const ElfW(Half) * versions = nullptr;
};

uint32_t GnuHash(const char* name) {
  uint32_t h = 5381;
  for (; *name != 0; ++name) h = h * 33 + static_cast<unsigned char>(*name);
  return h;
}

uint32_t OldHash(const char* name) {
  uint32_t h = 0;
  for (; *name != 0; ++name) {
    h = (h << 4) + static_cast<unsigned char>(*name);
    h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
  }
  return h;
}

// As strcmp and strrchr: the address sanitizer has those, and looks their own up by dlsym.
bool IsSameText(const char* one, const char* other) {
  for (; *one != 0 && *one == *other; ++one) ++other;
  return *one == *other;
}

const char* FileNameOf(const char* path) {
  const char* name = path;
  for (; *path != 0; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

bool Defines(const SymbolTables& tables, uint32_t i, const char* name) {
  const ElfW(Sym)& symbol = tables.symbols[i];
  return symbol.st_shndx != SHN_UNDEF && IsSameText(tables.strings + symbol.st_name, name);
}

// Any version of `name`.
void* FindByOldHash(const SymbolTables& tables, ElfW(Addr) base, const char* name) {
  const uint32_t bucket_count = tables.old_hash[0];
  const uint32_t* buckets = tables.old_hash + 2;
  if (bucket_count == 0) return nullptr;
  for (uint32_t i = buckets[OldHash(name) % bucket_count]; i != STN_UNDEF;
       i = buckets[bucket_count + i])
    if (Defines(tables, i, name)) return reinterpret_cast<void*>(base + tables.symbols[i].st_value);
  return nullptr;
}

// The default version of `name`, or any version if none is marked as default.
void* FindSymbol(const SymbolTables& tables, ElfW(Addr) base, const char* name) {
  if (tables.gnu_hash == nullptr) return FindByOldHash(tables, base, name);
  const uint32_t bucket_count = tables.gnu_hash[0];
  const uint32_t first = tables.gnu_hash[1];
  const uint32_t bloom_words = tables.gnu_hash[2];
  const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
  const auto* buckets = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
  const uint32_t* chain = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  const uint32_t hash = GnuHash(name);
  uint32_t i = buckets[hash % bucket_count];
  if (i < first) return nullptr;
  void* any = nullptr;
  for (;; ++i) {
    uint32_t h = chain[i - first];
    if ((h | 1) == (hash | 1) && Defines(tables, i, name)) {
      void* address = reinterpret_cast<void*>(base + tables.symbols[i].st_value);
      constexpr ElfW(Half) kHiddenVersion = 0x8000;
      if (tables.versions == nullptr || (tables.versions[i] & kHiddenVersion) == 0) return address;
      any = address;
    }
    if ((h & 1) != 0) return any;
  }
}

bool IsLibraryNamed(const char* path, const char* name) {
  return IsSameText(FileNameOf(path), name);
}

// False: an object without such tables.
bool ReadTables(const dl_phdr_info& info, SymbolTables& tables, const char** soname = nullptr) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i)
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
  if (dynamic == nullptr) return false;
  ElfW(Addr) name = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    // The loader has relocated these in place on most machines, not on all.
    ElfW(Addr) address = dynamic->d_un.d_ptr;
    if (address < info.dlpi_addr) address += info.dlpi_addr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
        break;
      case DT_STRTAB:
        tables.strings = reinterpret_cast<const char*>(address);
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = reinterpret_cast<const uint32_t*>(address);
        break;
      case DT_HASH:
        tables.old_hash = reinterpret_cast<const uint32_t*>(address);
        break;
      case DT_VERSYM:
        tables.versions = reinterpret_cast<const ElfW(Half)*>(address);
        break;
      case DT_SONAME:
        name = dynamic->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (soname != nullptr)
    *soname = tables.strings != nullptr && name != 0 ? tables.strings + name : "";
  return tables.symbols != nullptr && tables.strings != nullptr &&
         (tables.gnu_hash != nullptr || tables.old_hash != nullptr);
}

int LookForDlsym(dl_phdr_info* info, size_t, void* out) {
  // Before glibc 2.34 it is in libdl.
  if (info->dlpi_name == nullptr || !(IsLibraryNamed(info->dlpi_name, "libc.so.6") ||
                                      IsLibraryNamed(info->dlpi_name, "libdl.so.2")))
    return 0;
  SymbolTables tables;
  if (!ReadTables(*info, tables)) return 0;
  void* found = FindSymbol(tables, info->dlpi_addr, "dlsym");
  if (found == nullptr) return 0;
  *static_cast<void**>(out) = found;
  return 1;
}

struct ForeignSymbol {
  const char* name;
  void* address = nullptr;
};

// Does any object but this library define the name? dlsym and dlopen allocate on the program's heap
// when they fail. So they are asked only where they can succeed.
int LookForSymbol(dl_phdr_info* info, size_t, void* wanted) {
  auto* symbol = static_cast<ForeignSymbol*>(wanted);
  SymbolTables tables;
  if (!ReadTables(*info, tables)) return 0;
  void* found = FindSymbol(tables, info->dlpi_addr, symbol->name);
  if (found == nullptr || IsOwnAddress(found)) return 0;
  symbol->address = found;
  return 1;
}

// This thread is inside dlsym.
constinit thread_local bool t_in_dlsym __attribute__((tls_model("initial-exec"))) = false;

int LookForObject(dl_phdr_info* info, size_t, void* file) {
  const char* wanted = static_cast<const char*>(file);
  if (info->dlpi_name != nullptr && IsLibraryNamed(info->dlpi_name, wanted)) return 1;
  SymbolTables tables;
  const char* soname = "";
  ReadTables(*info, tables, &soname);
  return IsSameText(soname, wanted) ? 1 : 0;
}

// In a forked child the loader's list stays locked for ever if another thread of the parent was
// walking it. There the loader is asked straight away.
constinit std::atomic<bool> g_asks_no_kernel{false};
bool MayWalkObjects() {
  if (g_asks_no_kernel.load(std::memory_order_relaxed)) return true;
  static constinit std::atomic<long> first{0};
  const long own = RawSyscall(SYS_getpid);
  long expected = 0;
  return first.compare_exchange_strong(expected, own) || expected == own;
}

DlsymFn LibcDlsym() {
  void* found = g_libc_dlsym.load(std::memory_order_acquire);
  if (found == nullptr) {
    dl_iterate_phdr(LookForDlsym, &found);
    if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    g_libc_dlsym.store(found, std::memory_order_release);
  }
  return reinterpret_cast<DlsymFn>(found);
}

// ---- NCCL
// ------------------------------------------------------------------------------------------

void* BaseOf(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

struct Pair {
  void* plain = nullptr;
  void* second = nullptr;  // the name with the p
};

Pair LookUpPair(void* scope, const char* name) {
  char second_name[64];
  snprintf(second_name, sizeof second_name, "p%s", name);
  return {LookUpForeign(scope, name), LookUpForeign(scope, second_name)};
}

// pncclX, since NCCL's inner calls of ncclX come back to us. But if ncclX belongs to another tool
// that wraps NCCL as we do and was loaded after us, that tool comes next.
void* Choose(const Pair& pair) {
  if (pair.plain == nullptr || pair.second == nullptr)
    return pair.second != nullptr ? pair.second : pair.plain;
  return BaseOf(pair.plain) == BaseOf(pair.second) ? pair.second : pair.plain;
}

// The library that does the work.
void* BaseOf(const Pair& pair) {
  return BaseOf(pair.second != nullptr ? pair.second : pair.plain);
}

// True if the NCCL at `base` is the one in use or becomes it.
bool Adopt(void* base) {
  void* expected = nullptr;
  return g_nccl_base.compare_exchange_strong(expected, base) || expected == base;
}

void* HandleOfLoadedNccl() {
  // Stays open: the addresses that come from it are kept.
  return OpenLoaded("libnccl.so.2");
}

// Not our hook's write, and nothing that could fail on the way.
void Complain(const char* text, const char* detail) {
  char line[512];
  int n = snprintf(line, sizeof line, "deja: %s%s\n", text, detail);
  if (n > 0)
    syscall(SYS_write, 2, line, static_cast<size_t>(n) < sizeof line ? n : sizeof line - 1);
}

void ComplainAboutSecondNccl(const void* address) {
  static constinit std::atomic<bool> complained{false};
  Dl_info info;
  if (complained.exchange(true) || dladdr(address, &info) == 0) return;
  Complain("the program uses a second NCCL, whose calls are not seen: ", info.dli_fname);
}

}  // namespace

__attribute__((weak)) bool StandsInForNccl() {
  return false;
}

bool IsOwnAddress(const void* address) {
  auto a = reinterpret_cast<uintptr_t>(address);
  return a >= reinterpret_cast<uintptr_t>(__ehdr_start) && a < reinterpret_cast<uintptr_t>(_end);
}

void* LookUpForeign(void* scope, const char* name) {
  void* found = TryDlsym(scope, name);
  return IsOwnAddress(found) ? nullptr : found;
}

void* RealDlsym(void* handle, const char* name) {
  const bool outer = t_in_dlsym;
  t_in_dlsym = true;
  void* found = LibcDlsym()(handle, name);
  t_in_dlsym = outer;
  return found;
}

void* TryDlsym(void* scope, const char* name) {
  ForeignSymbol symbol{name};
  // Before glibc 2.34 dlsym itself calls pthread_once, which is hooked: asked for that, it would
  // call it for ever. The first definition is the C library's, or that of a library that wraps it.
  if (t_in_dlsym) {
    dl_iterate_phdr(LookForSymbol, &symbol);
    return symbol.address;
  }
  if (MayWalkObjects() && dl_iterate_phdr(LookForSymbol, &symbol) == 0) return nullptr;
  return RealDlsym(scope, name);
}

void* OpenLoaded(const char* file) {
  if (MayWalkObjects() && dl_iterate_phdr(LookForObject, const_cast<char*>(file)) == 0)
    return nullptr;
  return dlopen(file, RTLD_NOLOAD | RTLD_LAZY);
}

void* NextDlsym() {
  void* next = g_next_dlsym.load(std::memory_order_acquire);
  if (next == nullptr) {
    next = RealDlsym(RTLD_NEXT, "dlsym");
    if (next == nullptr || IsOwnAddress(next)) next = reinterpret_cast<void*>(LibcDlsym());
    g_next_dlsym.store(next, std::memory_order_release);
  }
  return next;
}

void LookUpWithoutKernel() {
  g_asks_no_kernel.store(true);
}

void* RealNext(const char* name) {
  return TryDlsym(RTLD_NEXT, name);
}

void* RealNccl(const char* name) {
  const ErrnoKeeper keep;
  // 1. An NCCL in the global scope, with the wrappers that stand between it and us.
  Pair next = LookUpPair(RTLD_NEXT, name);
  Pair pair = next;
  if (pair.second == nullptr) {
    // 2. One that the program opened. 3. One that came as a dependency of something it opened.
    pair = {};
    if (void* handle = g_nccl_handle.load(std::memory_order_acquire))
      pair = LookUpPair(handle, name);
    if (Choose(pair) == nullptr)
      if (void* handle = HandleOfLoadedNccl()) pair = LookUpPair(handle, name);
    // 4. A library that has only the plain names.
    if (Choose(pair) == nullptr) pair = next;
  }
  void* found = Choose(pair);
  if (found != nullptr) Adopt(BaseOf(pair));
  dlerror();  // what was not found is not the program's error
  return found;
}

bool IsNextDefinedBy(const char* name, const void* address) {
  void* next = LookUpForeign(RTLD_NEXT, name);
  dlerror();
  return next != nullptr && BaseOf(next) == BaseOf(address);
}

bool RememberNcclHandle(void* handle, const char* name) {
  const ErrnoKeeper keep;
  Pair pair = LookUpPair(handle, name);
  void* found = Choose(pair);
  bool adopted = found != nullptr && Adopt(BaseOf(pair));
  if (adopted && g_nccl_handle.load(std::memory_order_acquire) == nullptr) {
    // A reference of our own: the program may close its handle, and the addresses are kept.
    Dl_info info;
    void* own =
        dladdr(found, &info) != 0 ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : nullptr;
    void* expected = nullptr;
    g_nccl_handle.compare_exchange_strong(expected, own != nullptr ? own : handle);
  } else if (found != nullptr && !adopted) {
    ComplainAboutSecondNccl(found);
  }
  dlerror();
  return adopted;
}

void RealNcclPath(char* buffer, unsigned long size) {
  if (size == 0) return;
  buffer[0] = 0;
  Dl_info info;
  void* function = RealNccl("ncclGetVersion");
  if (function == nullptr || dladdr(function, &info) == 0 || info.dli_fname == nullptr) return;
  snprintf(buffer, size, "%s", info.dli_fname);
}

}  // namespace deja::preload
