// stat, lstat, fstat and fstatat as functions, which glibc has since 2.33, for binaries that run
// with an older one (cmake/Portable.cmake). As an object, linked before the C library.
// Libraries that a portable program carries along find them in it. As the C library's: errno says
// what failed.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// x86-64: the kernel's structure is that of the C library, and the 64 of the names changes nothing.
#define DEJA_STAT_FUNCTIONS(suffix)                                                             \
  int stat##suffix(const char* path, struct stat##suffix* out) noexcept {                       \
    return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, 0));                   \
  }                                                                                             \
  int lstat##suffix(const char* path, struct stat##suffix* out) noexcept {                      \
    return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW)); \
  }                                                                                             \
  int fstat##suffix(int fd, struct stat##suffix* out) noexcept {                                \
    return static_cast<int>(syscall(SYS_fstat, fd, out));                                       \
  }                                                                                             \
  int fstatat##suffix(int fd, const char* path, struct stat##suffix* out, int flags) noexcept { \
    return static_cast<int>(syscall(SYS_newfstatat, fd, path, out, flags));                     \
  }

extern "C" {
DEJA_STAT_FUNCTIONS()
DEJA_STAT_FUNCTIONS(64)
}
