#include "replayer/files/writer_share.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "preload/symbols/program_heap.h"

namespace deja::replayer {
namespace {

// The C library's vector: its length, one entry a module with thread-local storage, and some to
// spare.
constexpr size_t kEntryBytes = 2 * sizeof(void*);
constexpr size_t kSpareEntries = 14;
constexpr size_t kOtherEntries = 2;

// For good, as the thread's; a search for leaks (the address sanitizer) finds it here.
constinit std::atomic<void*> g_share{nullptr};

size_t ModulesWithThreadLocals() {
  size_t highest = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        auto& most = *static_cast<size_t*>(out);
        most = std::max(most, info->dlpi_tls_modid);
        return 0;
      },
      &highest);
  return highest;
}

}  // namespace

void TakeWriterShare() {
  g_share.store(preload::ProgramAllocateZeroed(
      ModulesWithThreadLocals() + kSpareEntries + kOtherEntries, kEntryBytes));
}

}  // namespace deja::replayer
