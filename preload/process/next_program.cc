#include "preload/process/next_program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "common/runtime/raw_syscall.h"

namespace deja::preload {
namespace {

static_assert(std::is_trivially_copyable_v<NextProgram>);

constexpr const char* kDefaultPath = "/bin:/usr/bin";
constexpr size_t kMostProgramHeaders = 64;
constexpr uint64_t kMostNoteBytes = 4096;

class OpenFile {
 public:
  explicit OpenFile(const char* path)
      : fd_(RawSyscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path),
                       O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (is_open()) RawSyscall(SYS_close, fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  template <typename T>
  bool Read(uint64_t at, T& out) const {
    return RawSyscall(SYS_pread64, fd_, reinterpret_cast<long>(&out), sizeof out,
                      static_cast<long>(at)) == static_cast<long>(sizeof out);
  }

 private:
  const long fd_;
};

// Whether the notes of the part are Go's, too. Programs of Go that are linked dynamically load
// Deja's library and make their system calls by themselves.
bool HasGoNote(const OpenFile& file, const Elf64_Phdr& part) {
  constexpr char kGo[] = "Go";
  const auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t{3}; };
  Elf64_Nhdr note{};
  for (uint64_t at = 0; at < std::min(part.p_filesz, kMostNoteBytes);
       at += sizeof note + padded(note.n_namesz) + padded(note.n_descsz)) {
    char name[sizeof kGo] = {};
    if (!file.Read(part.p_offset + at, note)) return false;
    if (note.n_namesz >= sizeof kGo && file.Read(part.p_offset + at + sizeof note, name) &&
        std::memcmp(name, kGo, sizeof kGo) == 0)
      return true;
  }
  return false;
}

// An ELF program that names no dynamic linker, or one of Go.
bool MakesItsOwnCalls(const char* path) {
  const OpenFile file(path);
  Elf64_Ehdr header{};
  if (!file.is_open() || !file.Read(0, header)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phnum > kMostProgramHeaders)
    return false;
  bool is_static = true;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!file.Read(header.e_phoff + i * sizeof part, part)) return false;
    if (part.p_type == PT_NOTE && HasGoNote(file, part)) return true;
    if (part.p_type == PT_INTERP) is_static = false;
  }
  return is_static;
}

}  // namespace

NextProgram::NextProgram(const char* path, char* const* argv) {
  if (path != nullptr) SetPath(path);
  for (size_t i = 0; argv != nullptr && argv[i] != nullptr; ++i) {
    const size_t room = arguments_.size() - arguments_size_;
    const size_t size = std::min(std::strlen(argv[i]) + 1, room);
    std::memcpy(arguments_.data() + arguments_size_, argv[i], size);
    arguments_size_ = static_cast<uint16_t>(arguments_size_ + size);
    if (size == room) break;
  }
}

NextProgram NextProgram::InPath(const char* file, char* const* argv) {
  NextProgram next(file, argv);
  const std::string_view name = file == nullptr ? "" : file;
  if (name.empty() || name.find('/') != std::string_view::npos) return next;
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : kDefaultPath;
  for (;;) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    std::array<char, kMostPath> path = {};
    if (folder.size() + name.size() + 2 <= path.size()) {
      char* end = std::copy(folder.begin(), folder.end(), path.begin());
      if (!folder.empty()) *end++ = '/';
      std::copy(name.begin(), name.end(), end);
      if (OpenFile(path.data()).is_open()) {
        next.SetPath(path.data());
        return next;
      }
    }
    if (folder.size() == rest.size()) return next;
    rest.remove_prefix(folder.size() + 1);
  }
}

void NextProgram::SetPath(std::string_view path) {
  path_ = {};
  path_size_ = static_cast<uint16_t>(std::min(path.size(), path_.size() - 1));
  std::memcpy(path_.data(), path.data(), path_size_);
}

void NextProgram::FindWhetherRecorded() {
  records_itself_ = path_size_ == 0 || !MakesItsOwnCalls(path_.data());
}

}  // namespace deja::preload
