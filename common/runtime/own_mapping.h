// Memory mappings of Deja's own, far from the program's.
//
// The kernel puts a new mapping below the last one. A mapping of Deja's placed there would move
// every later one of the program, and a recording and a replay do not make the same ones. These
// have addresses of their own, in a range that nothing else of the process uses. No lock, no
// allocation; safe in signal handlers and forked children.
#ifndef DEJA_COMMON_RUNTIME_OWN_MAPPING_H_
#define DEJA_COMMON_RUNTIME_OWN_MAPPING_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace deja {

// Far below where the kernel starts, and above a position-independent program and its heap. Outside
// of the address sanitizer's shadow memory and of its heap at 0x600000000000.
inline constexpr uintptr_t kOwnRangeStart = 0x680000000000;
inline constexpr uintptr_t kOwnRangeBytes = uintptr_t{8} << 40;

// In Deja's own builds with a sanitizer the kernel chooses: the thread sanitizer has the whole
// address space laid out.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasOwnRange = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kHasOwnRange = false;
#else
inline constexpr bool kHasOwnRange = true;
#endif
#else
inline constexpr bool kHasOwnRange = true;
#endif

// As mmap with no address wished for; MAP_FAILED and errno likewise. Where the range cannot be used
// (machines with smaller address spaces), the kernel chooses.
void* MapOwn(size_t bytes, int protection, int flags, int fd = -1, off_t offset = 0);

// As munmap, and no hook is asked.
int UnmapOwn(void* address, size_t bytes);

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_OWN_MAPPING_H_
