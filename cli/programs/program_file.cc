#include "cli/programs/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace deja::cli {
namespace {

// The loader itself has no loader, but a name.
bool IsLoaded(Elf* elf) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_INTERP)
      return true;
  }
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNAMIC) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    GElf_Dyn entry;
    for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr; ++i)
      if (entry.d_tag == DT_SONAME) return true;
  }
  return false;
}

}  // namespace

std::string WhyNoProgram(const std::string& path) {
  struct stat info {};
  const bool is_there = stat(path.c_str(), &info) == 0;
  if (is_there && !S_ISREG(info.st_mode)) return "is no regular file";
  if (is_there && (info.st_mode & (S_ISUID | S_ISGID)) != 0)
    return "runs as another user (set-user-id)";
  if (getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    return "gets privileges when it is started (file capabilities)";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "cannot be read";
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  std::string why;
  char first[2] = {};
  const bool is_script =
      pread(fd, first, sizeof first, 0) == 2 && first[0] == '#' && first[1] == '!';
  if (is_script)
    why.clear();  // its interpreter is what runs
  else if (elf == nullptr || elf_kind(elf) != ELF_K_ELF)
    why = "is no ELF program";
  else if (gelf_getclass(elf) != ELFCLASS64)
    why = "is no program of 64 bits";
  else if (!IsLoaded(elf))
    why = "is linked statically";
  if (elf != nullptr) elf_end(elf);
  close(fd);
  return why;
}

}  // namespace deja::cli
