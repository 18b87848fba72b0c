#include "common/runtime/own_mapping.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>

#include "common/runtime/raw_syscall.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace deja {
namespace {

constexpr uintptr_t kPage = 65536;  // the largest page of any machine

constinit std::atomic<uintptr_t> g_used{0};

bool Failed(long result) {
  return result < 0 && result > -4096;
}

// A place for `bytes` that no other thread gets, with an unmapped page after it. 0: there is none.
uintptr_t NextPlace(size_t bytes) {
  if (bytes > kOwnRangeBytes / 2) return 0;
  const uintptr_t room = ((bytes + kPage - 1) & ~(kPage - 1)) + kPage;
  for (;;) {
    const uintptr_t at = g_used.fetch_add(room, std::memory_order_relaxed) % kOwnRangeBytes;
    if (at + room <= kOwnRangeBytes) return kOwnRangeStart + at;
  }
}

}  // namespace

void* MapOwn(size_t bytes, int protection, int flags, int fd, off_t offset) {
  // Where a sanitizer sees it.
  if (!kHasOwnRange) return mmap(nullptr, bytes, protection, flags, fd, offset);
  // What was mapped longest ago may be in the way when the range is used up.
  constexpr int kTries = 64;
  long made = -EEXIST;
  for (int i = 0; i < kTries && made == -EEXIST; ++i) {
    const uintptr_t place = NextPlace(bytes);
    if (place == 0) break;
    made = RawSyscall(SYS_mmap, static_cast<long>(place), static_cast<long>(bytes), protection,
                      flags | MAP_FIXED_NOREPLACE, fd, offset);
  }
  if (Failed(made) && (made == -EEXIST || made == -ENOMEM || made == -EINVAL))
    made = RawSyscall(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, offset);
  if (!Failed(made)) return reinterpret_cast<void*>(made);  // NOLINT(performance-no-int-to-ptr)
  errno = static_cast<int>(-made);
  return MAP_FAILED;
}

int UnmapOwn(void* address, size_t bytes) {
  if (!kHasOwnRange) return munmap(address, bytes);
  const long result =
      RawSyscall(SYS_munmap, reinterpret_cast<long>(address), static_cast<long>(bytes));
  if (!Failed(result)) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace deja
