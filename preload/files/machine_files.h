// Files that describe this machine: the kernel's pseudo-files on CPUs, memory, control groups, the
// host and the process. Runtimes read them to set thread counts and buffer sizes, and programs
// print them. So a recording keeps their contents and a replay serves them.
//
// One table of patterns, each with its reason. Pure functions apart from MachineName, which may ask
// the kernel what a descriptor is. Any thread; no allocation.
#ifndef DEJA_PRELOAD_FILES_MACHINE_FILES_H_
#define DEJA_PRELOAD_FILES_MACHINE_FILES_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace deja::preload {

struct MachineFile {
  const char* pattern;  // * stands for anything, / included
  const char* reason;
  // Each open reads something else, so that the program must be given the very bytes that were
  // recorded. (Of the others, which change slowly, it reads the real file.)
  bool is_entropy = false;
};

// Whether `path`, absolute and as MachineName writes it, is such a file or folder; or null.
const MachineFile* FindMachineFile(std::string_view path);

// The name under which a file is recorded, written to `buffer`: absolute, with "self" for the
// process's own number. That is `pid`, and `other_pid` if it is not 0. Empty if `path`, relative to
// `dirfd` as in openat, is certainly no such file. `served`: a folder below which the folders
// NUMBER/<name> stand for the folders <name>; may be empty.
struct MachineNaming {
  int pid = 0;
  int other_pid = 0;
  std::string_view served;
};
std::string_view MachineName(int dirfd, const char* path, const MachineNaming& naming,
                             std::span<char> buffer);

// The whole table, for documents and tests.
std::span<const MachineFile> MachineFiles();

// Input.key of a file.
uint64_t MachineKey(std::string_view name);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_FILES_MACHINE_FILES_H_
