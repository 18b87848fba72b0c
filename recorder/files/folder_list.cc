#include "recorder/files/folder_list.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace deja::recorder {
namespace {

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

}  // namespace

bool ListFolder(int fd, std::span<char> list, size_t& size, bool (*wants)(std::string_view)) {
  alignas(8) char block[8192];
  for (;;) {
    const long n = syscall(SYS_getdents64, fd, block, sizeof block);
    if (n <= 0) return n == 0;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(block + at);
      at += entry->d_reclen;
      const size_t length = std::strlen(entry->d_name) + 1;
      if (wants != nullptr && !wants({entry->d_name, length - 1})) continue;
      if (size + 1 + length > list.size()) return false;
      list[size++] = LetterOf(entry->d_type);
      std::memcpy(list.data() + size, entry->d_name, length);
      size += length;
    }
  }
}

}  // namespace deja::recorder
