#include "cli/programs/build_id.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libelf.h>
#include <unistd.h>

namespace deja::cli {

std::string BuildIdOf(const std::string& path) {
  // The name may be a trace's: a pipe would make the reader wait.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  std::string id;
  if (elf != nullptr) {
    const void* bytes = nullptr;
    const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
    if (size > 0) id.assign(static_cast<const char*>(bytes), static_cast<size_t>(size));
    elf_end(elf);
  }
  close(fd);
  return id;
}

}  // namespace deja::cli
