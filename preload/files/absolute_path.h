// Absolute names of files, as texts: nothing is looked up but what a descriptor, or the working
// directory, is. Links stay as they are named.
//
// Any thread; no allocation; errno is kept.
#ifndef DEJA_PRELOAD_FILES_ABSOLUTE_PATH_H_
#define DEJA_PRELOAD_FILES_ABSOLUTE_PATH_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace deja::preload {

// Appends the components of `path` to the `size` bytes of a path in `buffer`, without empty ones
// and
// "."; ".." takes one away. False if there is no room.
bool AppendPath(std::string_view path, std::span<char> buffer, size_t& size);

// What the kernel says that `dirfd` is (AT_FDCWD: the working directory). Empty if it does not.
std::string_view PathOfDescriptor(int dirfd, std::span<char> buffer);

// `path`, relative to `dirfd` as in openat. Empty if that cannot be known, or there is no room.
std::string_view AbsolutePath(int dirfd, const char* path, std::span<char> buffer);

// The descriptor that `path` is a name of (/dev/stdin, /dev/fd/N, /proc/self/fd/N); -1: of none.
int DescriptorNamedBy(const char* path);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_FILES_ABSOLUTE_PATH_H_
