// /proc/self/environ as the program's: the kernel shows what the process was started with, Deja's
// variables included.
//
// Any thread, inside the guard; no allocation.
#ifndef DEJA_PRELOAD_FILES_ENVIRONMENT_FILE_H_
#define DEJA_PRELOAD_FILES_ENVIRONMENT_FILE_H_

#include <span>

namespace deja::preload {

// True if `path`, relative to `dirfd` as in openat, is that file of the calling process, and Deja's
// variables are hidden from the program.
bool IsOwnEnvironmentFile(int dirfd, const char* path);

// A descriptor of a copy without them, for the caller to close; -1: there is no memory for one.
// `path` becomes the name by which it can be opened.
int LendEnvironment(std::span<char> path);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_FILES_ENVIRONMENT_FILE_H_
