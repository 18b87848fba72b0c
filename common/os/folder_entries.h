// The names in a folder, without opendir, which allocates on the program's heap.
#ifndef DEJA_COMMON_OS_FOLDER_ENTRIES_H_
#define DEJA_COMMON_OS_FOLDER_ENTRIES_H_

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace deja {

// `see(name, folder)` for each entry, with the folder's descriptor, until it returns false. False
// if the folder cannot be opened.
template <typename See>
bool ForEachEntry(const char* path, See see) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) char buffer[8192];
  bool more = true;
  long size = 0;
  while (more && (size = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
    for (long at = 0; more && at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      more = see(static_cast<const char*>(entry->d_name), folder);
      at += entry->d_reclen;
    }
  }
  close(folder);
  return true;
}

}  // namespace deja

#endif  // DEJA_COMMON_OS_FOLDER_ENTRIES_H_
