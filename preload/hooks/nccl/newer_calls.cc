#include "preload/hooks/nccl/newer_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "api/nccl_table.h"
#include "common/runtime/errno_keeper.h"
#include "common/runtime/raw_syscall.h"
#include "common/runtime/spin_lock.h"
#include "preload/calls/life_calls.h"
#include "preload/hooks/input.h"
#include "preload/process/guard.h"
#include "preload/stack/modules.h"
#include "preload/symbols/real_symbols.h"

extern "C" __attribute__((visibility("hidden"))) const char deja_newer_stubs[];

namespace deja::preload {
namespace {

constexpr size_t kStubs = 64;
constexpr size_t kStubBytes = 16;
constexpr size_t kMostName = 96;

constexpr std::string_view kForwarded[] = {
#define DEJA_FORWARD(name, since, because) #name,
#include "api/tables/nccl_forwarded.def"
#undef DEJA_FORWARD
};

struct Stub {
  char name[kMostName] = {};
  std::atomic<void*> real{nullptr};
  std::atomic<bool> is_told{false};   // that the program may call it
  std::atomic<bool> is_noted{false};  // that it did
};

constinit std::array<Stub, kStubs> g_stubs{};
constinit std::atomic<uint32_t> g_count{0};
constinit SpinLock g_lock;  // of new ones
constinit std::atomic<uint64_t> g_objects_seen{0};

std::string_view WithoutP(std::string_view name) {
  return name.starts_with("pnccl") ? name.substr(1) : name;
}

void* StubUnderLock(const char* name, void* real) {
  const uint32_t count = g_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (g_stubs[i].real.load() == real && std::strcmp(g_stubs[i].name, name) == 0)
      return const_cast<char*>(deja_newer_stubs) + i * kStubBytes;
  const size_t size = std::strlen(name) + 1;
  if (count == kStubs || size > kMostName) return nullptr;
  std::memcpy(g_stubs[count].name, name, size);
  g_stubs[count].real.store(real);
  g_count.store(count + 1, std::memory_order_release);
  return const_cast<char*>(deja_newer_stubs) + count * kStubBytes;
}

// Its address; null where there is none left.
void* StubOf(const char* name, void* real) {
  if (!g_lock.LockBriefly()) return nullptr;
  void* stub = StubUnderLock(name, real);
  g_lock.Unlock();
  return stub;
}

// True if `address` is the start of a function in the NCCL that is in use. NCCL's tables for
// plug-ins have such names, too, and are no functions.
bool IsFunctionOfNccl(const void* address) {
  Dl_info info;
  Dl_info nccl;
  const ElfW(Sym)* symbol = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
              RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
    return false;
  void* known = RealNccl("ncclGetVersion");
  return known != nullptr && dladdr(known, &nccl) != 0 && nccl.dli_fbase == info.dli_fbase;
}

// The parts of an object that say what the loader binds.
struct Bindings {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * tables[2] = {};
  size_t sizes[2] = {};
  bool needs_nccl = false;
  uintptr_t read_only_begin = 0;  // once the loader has done its work
  uintptr_t read_only_end = 0;
};

uintptr_t PageOf(uintptr_t address) {
  return address & ~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
}

bool ReadBindings(const dl_phdr_info& info, Bindings& out) {
  const ElfW(Dyn)* dynamic = nullptr;
  out.base = info.dlpi_addr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    const uintptr_t at = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
    if (header.p_type != PT_GNU_RELRO) continue;
    out.read_only_begin = PageOf(at);
    out.read_only_end = PageOf(at + header.p_memsz);
  }
  if (dynamic == nullptr) return false;
  const auto pointer = [&info](const ElfW(Dyn) & entry) {
    const ElfW(Addr) address = entry.d_un.d_ptr;
    return address < info.dlpi_addr ? address + info.dlpi_addr : address;
  };
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB)
      out.symbols = reinterpret_cast<const ElfW(Sym)*>(pointer(*entry));
    if (entry->d_tag == DT_STRTAB) out.strings = reinterpret_cast<const char*>(pointer(*entry));
    if (entry->d_tag == DT_RELA) out.tables[0] = reinterpret_cast<ElfW(Rela)*>(pointer(*entry));
    if (entry->d_tag == DT_RELASZ) out.sizes[0] = entry->d_un.d_val;
    if (entry->d_tag == DT_JMPREL) out.tables[1] = reinterpret_cast<ElfW(Rela)*>(pointer(*entry));
    if (entry->d_tag == DT_PLTRELSZ) out.sizes[1] = entry->d_un.d_val;
  }
  if (out.symbols == nullptr || out.strings == nullptr) return false;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_NEEDED &&
        std::strstr(out.strings + entry->d_un.d_val, "nccl") != nullptr)
      out.needs_nccl = true;
  return true;
}

void Store(const Bindings& object, void** place, void* stub) {
  const auto at = reinterpret_cast<uintptr_t>(place);
  const bool is_read_only = at >= object.read_only_begin && at < object.read_only_end;
  const auto page = static_cast<long>(PageOf(at));
  const long size = sysconf(_SC_PAGESIZE);
  if (is_read_only && RawSyscall(SYS_mprotect, page, size, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(place, stub, __ATOMIC_RELEASE);
  if (is_read_only) RawSyscall(SYS_mprotect, page, size, PROT_READ);
}

// A place that the loader has filled, or will at the first call, with a function of such a name.
struct Place {
  Bindings object;
  void** at = nullptr;
  const char* name = nullptr;
};
constexpr size_t kMostPlaces = 256;
constinit std::array<Place, kMostPlaces> g_places{};
constinit size_t g_place_count = 0;
constinit SpinLock g_watching;  // of these two

void AddPlace(const Bindings& object, const ElfW(Rela) & relocation) {
  const auto type = ELF64_R_TYPE(relocation.r_info);
  const bool is_pointer = type == R_X86_64_64 && relocation.r_addend == 0;  // in the program's data
  if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && !is_pointer) return;
  const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
  const char* name = object.strings + symbol.st_name;
  if (symbol.st_shndx != SHN_UNDEF || !IsNewerNcclName(name)) return;
  auto** at = reinterpret_cast<void**>(object.base + relocation.r_offset);
  // Weak, and there was none; or led to a stub before.
  if (*at == nullptr || IsOwnAddress(*at) || g_place_count == kMostPlaces) return;
  g_places[g_place_count++] = {object, at, name};
}

int FindPlaces(dl_phdr_info* info, size_t, void*) {
  Bindings object;
  if (!ReadBindings(*info, object) || !object.needs_nccl) return 0;
  for (int table = 0; table < 2; ++table)
    for (size_t i = 0; i < object.sizes[table] / sizeof(ElfW(Rela)); ++i)
      AddPlace(object, object.tables[table][i]);
  return 0;
}

// False: another thread is at it. Never waits: that thread may wait for the loader, which this one
// may be in. The loader is not asked while it shows its objects, for the same reason.
bool WatchObjects() {
  if (!g_watching.TryLock()) return false;
  g_place_count = 0;
  dl_iterate_phdr(&FindPlaces, nullptr);
  for (size_t i = 0; i < g_place_count; ++i) {
    const Place& place = g_places[i];
    void* real = RealNccl(place.name);
    if (real == nullptr || !IsFunctionOfNccl(real)) continue;
    if (void* stub = StubOf(place.name, real)) Store(place.object, place.at, stub);
  }
  g_watching.Unlock();
  return true;
}

// What the trace gets to know.
void Tell() {
  Engine* engine = GetEngine();
  if (engine == nullptr) return;
  for (uint32_t i = 0; i < g_count.load(std::memory_order_acquire); ++i)
    if (!g_stubs[i].is_told.exchange(true)) SayNewerCall(*engine, g_stubs[i].name, false);
}

// Programs are linked to NCCL, or to something that is, before the first call.
__attribute__((constructor)) void WatchLinkedObjects() {
  if (StandsInForNccl() || InsideDeja()) return;
  const ErrnoKeeper keep;
  const Guard guard;
  WatchObjects();
}

}  // namespace

bool IsNewerNcclName(const char* name) {
  if (name == nullptr) return false;
  const std::string_view text = WithoutP(name);
  if (!text.starts_with("nccl") || text.size() < 5 || text[4] < 'A' || text[4] > 'Z') return false;
  if (api::FindNccl(text) != nullptr) return false;
  for (const std::string_view forwarded : kForwarded)
    if (text == forwarded) return false;
  return true;
}

void WatchNewerCalls() {
  if (StandsInForNccl()) return;
  const uint64_t objects = ObjectsLoaded();
  if (g_objects_seen.load() != objects && WatchObjects()) g_objects_seen.store(objects);
  Tell();
}

void SayNewerCall(Engine& engine, const char* name, bool is_made) {
  char what[256];
  const int size = std::snprintf(
      what, sizeof what,
      is_made ? "%s, a call of a newer NCCL than Deja knows (%d.%d.%d); a replay ends at it"
              : "%s, if the program calls it: NCCL has it since a newer release than Deja "
                "knows (%d.%d.%d)",
      name, api::kNewestNccl / 10000, api::kNewestNccl / 100 % 100, api::kNewestNccl % 100);
  engine.life->OnNotRecorded({what, static_cast<size_t>(size)}, !is_made, name);
}

void* NewerCallFor(const char* name, void* function) {
  if (StandsInForNccl() || !IsFunctionOfNccl(function)) return nullptr;
  void* stub = StubOf(name, function);
  Tell();
  return stub;
}

}  // namespace deja::preload

// What stub `number` jumps to.
extern "C" __attribute__((visibility("hidden"))) void* deja_newer_call(uint32_t number) {
  namespace dp = deja::preload;
  dp::Stub& stub = dp::g_stubs[number];
  if (dp::Engine* engine = dp::EngineForHook(); engine != nullptr) {
    const deja::ErrnoKeeper keep;
    const dp::Guard guard;
    dp::Tell();
    if (!stub.is_noted.exchange(true)) dp::SayNewerCall(*engine, stub.name, true);
  }
  return stub.real.load(std::memory_order_acquire);
}
