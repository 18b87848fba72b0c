#include "recorder/folders.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "preload/absolute_path.h"
#include "recorder/mapped_memory.h"
#include "recorder/recorder_engine.h"

namespace deja::recorder {
namespace {

// What longer lists hold is not recorded.
constexpr size_t kMostEntries = 64 << 20;

char LetterOf(unsigned char type) {
  switch (type) {
    case DT_DIR:
      return 'd';
    case DT_REG:
      return 'f';
    case DT_LNK:
      return 'l';
    default:
      return 'o';
  }
}

// Appends the entries of the folder `fd` to `list`. False if there are too many.
bool List(int fd, char* list, size_t& size) {
  alignas(8) char block[8192];
  for (;;) {
    const long n = syscall(SYS_getdents64, fd, block, sizeof block);
    if (n <= 0) return n == 0;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(block + at);
      at += entry->d_reclen;
      const size_t length = std::strlen(entry->d_name) + 1;
      if (size + 1 + length > kMostEntries) return false;
      list[size++] = LetterOf(entry->d_type);
      std::memcpy(list + size, entry->d_name, length);
      size += length;
    }
  }
}

}  // namespace

void RecordedFolders::OnOpened(DIR* stream, const char* path) {
  const ErrnoKeeper keep;
  Recording* rec = find_();
  if (rec == nullptr) return;
  char buffer[PATH_MAX];
  const std::string_view name = path != nullptr ? preload::AbsolutePath(AT_FDCWD, path, buffer)
                                                : preload::PathOfDescriptor(dirfd(stream), buffer);
  if (!rec->input_files.Wants(name)) return;
  // A description of its own: where the program's stream stands is its business.
  const int fd = openat(dirfd(stream), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info {};
  auto* list = fd < 0 ? nullptr : static_cast<char*>(MapZeroed(kMostEntries));
  size_t size = 0;
  if (list != nullptr && fstat(fd, &info) == 0 && List(fd, list, size))
    rec->input_files.Folder(*rec, name, info, {list, size});
  if (list != nullptr) munmap(list, kMostEntries);
  if (fd >= 0) close(fd);
}

}  // namespace deja::recorder
