#include "recorder/files/folders.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "common/runtime/errno_keeper.h"
#include "preload/files/absolute_path.h"
#include "recorder/core/recording.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/files/file_state.h"
#include "recorder/files/folder_list.h"

namespace deja::recorder {
namespace {

// What longer lists hold is not recorded.
constexpr size_t kMostEntries = 64 << 20;

}  // namespace

void RecordedFolders::OnOpened(DIR* stream, const char* path) {
  const ErrnoKeeper keep;
  Recording* rec = find_();
  if (rec == nullptr) return;
  char buffer[PATH_MAX];
  const std::string_view name = path != nullptr ? preload::AbsolutePath(AT_FDCWD, path, buffer)
                                                : preload::PathOfDescriptor(dirfd(stream), buffer);
  if (!FilesOf(*rec).inputs.Wants(name)) return;
  // A description of its own: where the program's stream stands is its business.
  const int fd = openat(dirfd(stream), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info {};
  auto* list = fd < 0 ? nullptr : static_cast<char*>(MapZeroed(kMostEntries));
  size_t size = 0;
  if (list != nullptr && fstat(fd, &info) == 0 && ListFolder(fd, {list, kMostEntries}, size))
    FilesOf(*rec).inputs.Folder(*rec, name, info, {list, size});
  if (list != nullptr) munmap(list, kMostEntries);
  if (fd >= 0) close(fd);
}

}  // namespace deja::recorder
