// What the program's file and its libraries allow: whether a library can be preloaded into them,
// and whether they contain NCCL themselves.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "cli/doctor/doctor.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// A file in memory, to be looked at only.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0) {
      void* data =
          mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (data != MAP_FAILED)
        bytes_ = {static_cast<const char*>(data), static_cast<size_t>(status.st_size)};
    }
    if (fd >= 0) close(fd);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  // The structure at `offset`; false if the file ends before.
  template <typename T>
  bool Read(uint64_t offset, T& out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof out) return false;
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return true;
  }
  std::string_view Text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    return bytes_.substr(offset, bytes_.find('\0', offset) - offset);
  }

 private:
  std::string_view bytes_;
};

bool ReadHeader(const MappedFile& file, Elf64_Ehdr& header) {
  return file.Read(0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64;
}

bool HasInterpreter(const MappedFile& file, const Elf64_Ehdr& header) {
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (file.Read(header.e_phoff + i * header.e_phentsize, segment) && segment.p_type == PT_INTERP)
      return true;
  }
  return false;
}

// Whether a symbol that others see begins with "nccl" and is (or is not) defined here.
bool HasDynamicNccl(const MappedFile& file, const Elf64_Ehdr& header, bool defined) {
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table;
    Elf64_Shdr strings;
    if (!file.Read(header.e_shoff + i * header.e_shentsize, table) || table.sh_type != SHT_DYNSYM)
      continue;
    if (!file.Read(header.e_shoff + table.sh_link * uint64_t{header.e_shentsize}, strings))
      continue;
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!file.Read(table.sh_offset + at, symbol)) break;
      if ((symbol.st_shndx != SHN_UNDEF) != defined) continue;
      if (file.Text(strings.sh_offset + symbol.st_name).starts_with("nccl")) return true;
    }
  }
  return false;
}

// Libraries that the loader would load for `path`, which is not run.
std::vector<std::string> LinkedLibraries(const std::string& path) {
  std::vector<std::string> list;
  std::istringstream lines(OutputOf({"/lib64/ld-linux-x86-64.so.2", "--list", path}).text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find("=> /");
    if (begin != std::string::npos)
      list.push_back(line.substr(begin + 3, line.find(" (", begin) - begin - 3));
  }
  return list;
}

void AddStatic(const std::string& path, std::vector<Finding>& findings) {
  findings.push_back({"nccl-static", Severity::kProblem,
                      path + " has NCCL linked into it: its collectives cannot be seen",
                      "link it with libnccl.so.2 (-lnccl instead of -lnccl_static; PyTorch: "
                      "USE_SYSTEM_NCCL=1 with "
                      "a shared NCCL)"});
}

void CheckElf(const std::string& path, std::vector<Finding>& findings) {
  const MappedFile file(path);
  Elf64_Ehdr header;
  if (!ReadHeader(file, header)) return;
  if (!HasInterpreter(file, header)) {
    findings.push_back({"static", Severity::kProblem,
                        path + " is statically linked: no library can be loaded in front of it",
                        "link it dynamically"});
    return;
  }
  bool has_static = HasStaticNccl(path);
  if (has_static) AddStatic(path, findings);
  for (const std::string& library : LinkedLibraries(path)) {
    if (!HasStaticNccl(library)) continue;
    has_static = true;
    AddStatic(library, findings);
  }
  if (!has_static)
    findings.push_back({"nccl-static", Severity::kOk,
                        path + " and its libraries have no NCCL linked into them", ""});
}

void CheckRights(const std::string& path, std::vector<Finding>& findings) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0)
    findings.push_back({"set-user-id", Severity::kProblem,
                        path + " is set-user-id: the loader takes no notice of LD_PRELOAD",
                        "run a copy without that bit, as the user that it would become"});
}

}  // namespace

bool HasStaticNccl(const std::string& path) {
  if (fs::path(path).filename().native().starts_with("libnccl.so")) return false;
  const MappedFile file(path);
  Elf64_Ehdr header;
  if (!ReadHeader(file, header) || HasDynamicNccl(file, header, false)) return false;
  // NCCL itself reads this variable; a mere caller of NCCL does not.
  return HasDynamicNccl(file, header, true) ||
         file.bytes().find(std::string_view("\0NCCL_DEBUG_SUBSYS\0", 19)) != std::string_view::npos;
}

void CheckProgram(const DoctorRequest& request, const PythonCommand& python,
                  std::vector<Finding>& findings) {
  const std::string path = FindExecutable(request.program[0]);
  if (path.empty()) {
    findings.push_back({"program", Severity::kProblem,
                        request.program[0] + " is not there, or is no program",
                        "name it as a shell would find it"});
    return;
  }
  // The word after mpirun, env, timeout … is a program, too.
  std::set<std::string> seen;
  for (const std::string& word : request.program) {
    const std::string candidate = FindExecutable(word);
    if (candidate.empty() || !seen.insert(candidate).second) continue;
    CheckRights(candidate, findings);
    if (candidate == python.executable) break;
    CheckElf(candidate, findings);
  }
}

}  // namespace deja::cli
