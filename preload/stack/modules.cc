#include "preload/stack/modules.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

#include "common/runtime/spin_lock.h"

namespace deja::preload {
namespace {

constexpr uint32_t kMaxModules = 4000;

Module g_modules[kMaxModules];
std::atomic<uint32_t> g_count{0};
std::atomic<uint32_t> g_generation{0};
std::atomic<uint32_t> g_version{0};
// What the loader had counted when the table was last brought up to date.
std::atomic<uint64_t> g_adds{0};
std::atomic<uint64_t> g_subs{0};
SpinLock g_lock;

void ReadBuildId(const char* note, const char* end, size_t align, Module& module) {
  auto padded = [align](size_t n) { return (n + align - 1) & ~(align - 1); };
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof header);
    const char* name = note + sizeof header;
    // Name and description are each padded to the segment's alignment.
    size_t description_at = padded(sizeof header + header.n_namesz);
    const char* description = note + description_at;
    if (description + header.n_descsz > end) return;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0 && header.n_descsz <= sizeof module.build_id) {
      module.build_id_size = static_cast<uint8_t>(header.n_descsz);
      std::memcpy(module.build_id, description, header.n_descsz);
      return;
    }
    note += padded(description_at + header.n_descsz);
  }
}

void Describe(const dl_phdr_info& info, bool is_executable, Module& module) {
  module.base = info.dlpi_addr;
  module.start = UINT64_MAX;
  module.end = 0;
  module.eh_frame_hdr = 0;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& ph = info.dlpi_phdr[i];
    uint64_t at = info.dlpi_addr + ph.p_vaddr;
    if (ph.p_type == PT_LOAD) {
      if (at < module.start) module.start = at;
      if (at + ph.p_memsz > module.end) module.end = at + ph.p_memsz;
    } else if (ph.p_type == PT_GNU_EH_FRAME) {
      module.eh_frame_hdr = at;
    } else if (ph.p_type == PT_NOTE && module.build_id_size == 0) {
      const char* note = reinterpret_cast<const char*>(at);
      ReadBuildId(note, note + ph.p_memsz, ph.p_align == 8 ? 8 : 4, module);
    }
  }
  if (is_executable) {
    ssize_t n = readlink("/proc/self/exe", module.path, sizeof module.path - 1);
    module.path[n > 0 ? n : 0] = 0;
  } else {
    std::strncpy(module.path, info.dlpi_name, sizeof module.path - 1);
  }
  uint64_t here = reinterpret_cast<uint64_t>(&RefreshModules);
  // In a test Deja is part of the executable, whose frames are wanted.
  module.own = !is_executable && here >= module.start && here < module.end;
}

struct Scan {
  uint32_t index = 0;    // of the next module in the loader's list
  uint32_t lasting = 0;  // this many at its beginning were loaded with the program
  uint64_t adds = 0;
  uint64_t subs = 0;
  bool seen[kMaxModules] = {};
};

Scan g_scan;  // guarded by g_lock

bool IsSame(const Module& module, const dl_phdr_info& info, bool is_executable) {
  return module.loaded.load(std::memory_order_relaxed) && module.base == info.dlpi_addr &&
         (is_executable || std::strncmp(module.path, info.dlpi_name, sizeof module.path - 1) == 0);
}

int OnModule(dl_phdr_info* info, size_t, void*) {
  Scan& scan = g_scan;
  const uint32_t index = scan.index++;
  const bool is_executable = index == 0;
  scan.adds = info->dlpi_adds;
  scan.subs = info->dlpi_subs;
  uint32_t count = g_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (!scan.seen[i] && IsSame(g_modules[i], *info, is_executable)) {
      scan.seen[i] = true;
      return 0;
    }
  }
  if (count == kMaxModules) return 1;
  Module& module = g_modules[count];
  module.number = count + 1;
  Describe(*info, is_executable, module);
  module.lasting = index < scan.lasting;
  scan.seen[count] = true;
  module.loaded.store(true, std::memory_order_release);
  g_count.store(count + 1, std::memory_order_release);
  return 0;
}

struct LoaderPlace {
  uint64_t base = 0;
  uint32_t index = 0;
};

int IsLoader(dl_phdr_info* info, size_t, void* context) {
  auto& place = *static_cast<LoaderPlace*>(context);
  ++place.index;
  return info->dlpi_addr == place.base;
}

// The loader adds what is opened later at the end of its list, behind itself. So all up to itself
// were there when the program began, and those it never unloads.
uint32_t CountOfLasting() {
  LoaderPlace place;
  place.base = getauxval(AT_BASE);
  if (place.base == 0) return 0;  // the loader was run as a program
  return dl_iterate_phdr(&IsLoader, &place) != 0 ? place.index : 0;
}

int OnlyCounters(dl_phdr_info* info, size_t, void* context) {
  auto* counters = static_cast<uint64_t*>(context);
  counters[0] = info->dlpi_adds;
  counters[1] = info->dlpi_subs;
  return 1;
}

}  // namespace

uint64_t ObjectsLoaded() {
  uint64_t counters[2] = {};
  dl_iterate_phdr(&OnlyCounters, counters);
  return counters[0];
}

bool RefreshModules() {
  uint64_t counters[2] = {};
  dl_iterate_phdr(&OnlyCounters, counters);
  if (counters[0] == g_adds.load(std::memory_order_acquire) &&
      counters[1] == g_subs.load(std::memory_order_acquire))
    return true;
  if (!g_lock.LockBriefly()) return false;
  g_scan = Scan{};
  g_scan.lasting = CountOfLasting();
  dl_iterate_phdr(&OnModule, nullptr);
  uint32_t count = g_count.load(std::memory_order_relaxed);
  bool unloaded = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!g_scan.seen[i] && g_modules[i].loaded.load(std::memory_order_relaxed)) {
      g_modules[i].loaded.store(false, std::memory_order_release);
      unloaded = true;
    }
  }
  // The counter moves even when the same file came back at the same place.
  if (unloaded || g_scan.subs != g_subs.load(std::memory_order_relaxed))
    g_generation.fetch_add(1, std::memory_order_acq_rel);
  g_version.fetch_add(1, std::memory_order_acq_rel);
  g_subs.store(g_scan.subs, std::memory_order_release);
  g_adds.store(g_scan.adds, std::memory_order_release);
  g_lock.Unlock();
  return true;
}

uint32_t ModuleCount() {
  return g_count.load(std::memory_order_acquire);
}

Module& ModuleAt(uint32_t number) {
  return g_modules[number - 1];
}

const Module* FindModule(uint64_t pc) {
  for (uint32_t i = ModuleCount(); i-- > 0;) {
    const Module& m = g_modules[i];
    if (pc >= m.start && pc < m.end && m.loaded.load(std::memory_order_acquire)) return &m;
  }
  return nullptr;
}

uint32_t ModuleGeneration() {
  return g_generation.load(std::memory_order_acquire);
}

uint32_t ModuleVersion() {
  return g_version.load(std::memory_order_acquire);
}

void ResetModulesInChild() {
  uint32_t count = ModuleCount();
  for (uint32_t i = 0; i < count; ++i)
    g_modules[i].reported.store(false, std::memory_order_relaxed);
}

}  // namespace deja::preload
