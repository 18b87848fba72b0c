#include "common/own_mapping.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace deja {
namespace {

constexpr uintptr_t kPage = 65536;  // the largest page of any machine

constinit std::atomic<uintptr_t> g_used{0};

// The system call itself: mmap, munmap and syscall have hooks, and this is called before these are
// ready.
long Call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#else
  const long result = syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
#endif
}

bool Failed(long result) {
  return result < 0 && result > -4096;
}

// A place for `bytes` that no other thread gets, with an unmapped page behind it.
uintptr_t NextPlace(size_t bytes) {
  const uintptr_t room = ((bytes + kPage - 1) & ~(kPage - 1)) + kPage;
  return kOwnRangeStart + g_used.fetch_add(room, std::memory_order_relaxed) % kOwnRangeBytes;
}

}  // namespace

void* MapOwn(size_t bytes, int protection, int flags, int fd, off_t offset) {
  constexpr int kTries =
      64;  // what was mapped longest ago may be in the way when the range is used up
  long made = -EEXIST;
  for (int i = 0; i < kTries && made == -EEXIST; ++i)
    made = Call(SYS_mmap, static_cast<long>(NextPlace(bytes)), static_cast<long>(bytes), protection,
                flags | MAP_FIXED_NOREPLACE, fd, offset);
  if (Failed(made) && (made == -EEXIST || made == -ENOMEM || made == -EINVAL))
    made = Call(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, offset);
  if (!Failed(made)) return reinterpret_cast<void*>(made);  // NOLINT(performance-no-int-to-ptr)
  errno = static_cast<int>(-made);
  return MAP_FAILED;
}

int UnmapOwn(void* address, size_t bytes) {
  const long result =
      Call(SYS_munmap, reinterpret_cast<long>(address), static_cast<long>(bytes), 0, 0, 0, 0);
  if (!Failed(result)) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace deja
