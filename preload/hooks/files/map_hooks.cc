// Mappings of files. Allocators map memory with locks held and before anything is ready, so the
// real functions are looked up when the library is loaded; until then the bare system call is made,
// as the C library does.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/calls/file_calls.h"
#include "preload/engine/engine.h"
#include "preload/engine/fd_table.h"
#include "preload/engine/mapped_inputs.h"
#include "preload/hooks/export.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {

namespace {

using MapFn = void* (*)(void*, size_t, int, int, int, off64_t);
using UnmapFn = int (*)(void*, size_t);
constinit std::atomic<MapFn> g_map{nullptr};
constinit std::atomic<UnmapFn> g_unmap{nullptr};

__attribute__((constructor)) void FindRealFunctions() {
  g_map.store(reinterpret_cast<MapFn>(RealNext("mmap")), std::memory_order_release);
  g_unmap.store(reinterpret_cast<UnmapFn>(RealNext("munmap")), std::memory_order_release);
}

void* RealMap(void* address, size_t size, int protection, int flags, int fd, off64_t offset) {
  if (const MapFn map = g_map.load(std::memory_order_acquire))
    return map(address, size, protection, flags, fd, offset);
  const long made = syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  return made == -1 ? MAP_FAILED : reinterpret_cast<void*>(made);
}

void* Map(void* address, size_t size, int protection, int flags, int fd, off64_t offset) {
  void* memory = RealMap(address, size, protection, flags, fd, offset);
  if (memory == MAP_FAILED) return memory;
  if ((flags & MAP_ANONYMOUS) != 0 || fd < 0 || (protection & PROT_READ) == 0) return memory;
  FdObject* object = FdTable::Find(fd);
  if (object == nullptr || object->kind() != FdObject::Kind::kFile || InsideDeja()) return memory;
  const Guard guard;
  object->AfterMap(memory, size, offset);
  return memory;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT void* mmap(void* address, size_t size, int protection, int flags, int fd,
                       off_t offset) noexcept {
  return Map(address, size, protection, flags, fd, offset);
}

DEJA_EXPORT void* mmap64(void* address, size_t size, int protection, int flags, int fd,
                         off64_t offset) noexcept {
  return Map(address, size, protection, flags, fd, offset);
}

DEJA_EXPORT int munmap(void* address, size_t size) noexcept {
  if (g_mapped_inputs.load(std::memory_order_relaxed) != 0 && !InsideDeja()) {
    const Guard guard;
    if (Engine* engine = EngineOfThisProcess()) engine->files->BeforeUnmap(address, size);
  }
  if (const UnmapFn unmap = g_unmap.load(std::memory_order_acquire)) return unmap(address, size);
  return static_cast<int>(syscall(SYS_munmap, address, size));
}
