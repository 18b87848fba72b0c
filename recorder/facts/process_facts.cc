#include "recorder/facts/process_facts.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>
#include <string_view>

#include "common/os/cpu.h"
#include "common/own_variable_names.h"
#include "common/runtime/clock_ns.h"
#include "recorder/events/mapped_memory.h"

namespace deja::recorder {
namespace {

std::vector<std::string> SplitAtZeros(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\0', at);
    if (end == std::string_view::npos) end = text.size();
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string LinkTarget(const char* path) {
  char buffer[4096];
  ssize_t n = readlink(path, buffer, sizeof buffer);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : std::string();
}

// "LD_PRELOAD=a:b" without our library; empty when nothing is left.
std::string WithoutOurPreload(std::string_view entry) {
  std::string_view list = entry.substr(entry.find('=') + 1);
  std::string rest;
  while (!list.empty()) {
    size_t end = list.find_first_of(": ");
    std::string_view item = list.substr(0, end);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
    if (item.empty() || item.find("libdeja_record") != std::string_view::npos) continue;
    if (!rest.empty()) rest += ':';
    rest += item;
  }
  return rest.empty() ? rest : "LD_PRELOAD=" + rest;
}

int FindBuildId(dl_phdr_info* info, size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* description = name + ((note.n_namesz + 3) & ~3u);
      if (description + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        static_cast<std::string*>(result)->assign(description, note.n_descsz);
        return 1;
      }
      at = description + ((note.n_descsz + 3) & ~3u);
    }
  }
  return 1;  // the first object is the executable; the others do not matter
}

// From /proc, since umask() cannot be asked without being changed for a moment.
uint32_t UmaskPlusOne() {
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512] = {};
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  const char* line = size > 0 ? std::strstr(text, "\nUmask:") : nullptr;
  if (line == nullptr) return 0;
  return static_cast<uint32_t>(std::strtoul(line + std::strlen("\nUmask:"), nullptr, 8)) + 1;
}

// Those without close-on-exec: exec would have closed the others when this image began.
uint64_t InheritedDescriptors() {
  constexpr int kPlaces = 64;
  uint64_t open = 0;
  for (int fd = STDERR_FILENO + 1; fd < kPlaces; ++fd)
    if (const int flags = fcntl(fd, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0)
      open |= uint64_t{1} << fd;
  return open;
}

// From the file of users alone: asking the name services loads libraries and opens connections.
std::string UserName(uid_t uid) {
  std::string number = std::to_string(uid);
  int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return number;
  std::string text;
  char buffer[4096];
  constexpr size_t kMost = 1 << 20;
  for (ssize_t n; text.size() < kMost && (n = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(fd);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    const size_t name = line.find(':');
    const size_t word = name == std::string_view::npos ? name : line.find(':', name + 1);
    if (word != std::string_view::npos && line.substr(word + 1).starts_with(number + ":"))
      return std::string(line.substr(0, name));
    at = end + 1;
  }
  return number;
}

// glibc (2.36) has ended GLIBC_TUNABLES at its colons, in the memory that /proc/self/environ shows;
// `environ` has a copy of the whole.
void RestoreColons(char* environment, size_t size) {
  constexpr std::string_view kName = "GLIBC_TUNABLES=";
  const char* value = std::getenv("GLIBC_TUNABLES");
  if (value == nullptr) return;
  const size_t length = std::strlen(value);
  for (size_t at = 0; at + kName.size() + length < size;
       at += strnlen(environment + at, size - at) + 1) {
    if (!std::string_view(environment + at).starts_with(kName)) continue;
    char* shown = environment + at + kName.size();
    const bool is_it = std::equal(shown, shown + length, value, [](char has, char was) {
      return has == was || (has == '\0' && was == ':');
    });
    if (is_it && shown[length] == '\0') std::memcpy(shown, value, length);
    return;
  }
}

}  // namespace

void ProcessFacts::RawFile::Read(const char* path) {
  constexpr size_t kMost = 8 << 20;  // the kernel's own limit is below
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  data = static_cast<char*>(MapZeroed(kMost));
  if (data != nullptr)
    for (ssize_t n = 0; size < kMost && (n = read(fd, data + size, kMost - size)) > 0;)
      size += static_cast<size_t>(n);
  close(fd);
  if (data == nullptr) return;
  size_t keep = (size + 4095) & ~size_t{4095};
  if (keep < kMost) munmap(data + keep, kMost - keep);
}

void ProcessFacts::RawFile::Forget() {
  if (data != nullptr) munmap(data, (size + 4095) & ~size_t{4095});
  data = nullptr;
  size = 0;
}

void ProcessFacts::Begin() {
  start_wall_ns_ = ClockNs(CLOCK_REALTIME);
  start_mono_ns_ = ClockNs(CLOCK_MONOTONIC);
  pid_ = static_cast<uint32_t>(getpid());
  parent_pid_ = static_cast<uint32_t>(getppid());
  umask_ = UmaskPlusOne();
  inherited_ = InheritedDescriptors();
  raw_arguments_.Read("/proc/self/cmdline");
  raw_environment_.Read("/proc/self/environ");
  if (raw_environment_.data != nullptr) RestoreColons(raw_environment_.data, raw_environment_.size);
  if (getcwd(working_directory_, sizeof working_directory_) == nullptr)
    working_directory_[0] = '\0';
}

void ProcessFacts::NoteMasked(const std::string& what, std::string_view rule) {
  if (rule.empty()) return;
  masked_.push_back(what);
  masked_by_.push_back(rule);
}

void ProcessFacts::TakeArguments(const SecretRule& rule) {
  argv_ = SplitAtZeros({raw_arguments_.data, raw_arguments_.size});
  std::string previous;
  for (size_t i = 0; i < argv_.size(); ++i) {
    std::string current = argv_[i];
    NoteMasked("argv[" + std::to_string(i) + "]", rule.MaskArgument(previous, argv_[i]));
    previous = std::move(current);
  }
  raw_arguments_.Forget();
}

void ProcessFacts::TakeEnvironment(const SecretRule& rule) {
  for (std::string& entry : SplitAtZeros({raw_environment_.data, raw_environment_.size})) {
    if (IsHiddenVariable(entry)) continue;
    if (entry.starts_with("LD_PRELOAD=")) entry = WithoutOurPreload(entry);
    if (entry.empty()) continue;
    const size_t equals = std::min(entry.find('='), entry.size() - 1);
    const std::string name = entry.substr(0, equals);
    NoteMasked(name, rule.MaskValue(name, std::span(entry).subspan(equals + 1)));
    environment_.push_back(std::move(entry));
  }
  raw_environment_.Forget();
}

void ProcessFacts::Complete(const char* nccl_path, uint32_t nccl_version, const SecretRule& rule) {
  nccl_path_ = nccl_path;
  nccl_version_ = nccl_version;
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) hostname_ = host;
  executable_ = LinkTarget("/proc/self/exe");
  dl_iterate_phdr(FindBuildId, &build_id_);
  // A child that becomes a rank comes here twice; what the kernel said is taken once.
  if (argv_.empty()) {
    TakeArguments(rule);
    TakeEnvironment(rule);
  }
  utsname names{};
  if (uname(&names) == 0)
    kernel_ = std::string(names.sysname) + " " + names.release + " " + names.machine + " " +
              names.version;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  cpu_count_ = sched_getaffinity(0, sizeof cpus, &cpus) == 0
                   ? static_cast<uint32_t>(CPU_COUNT(&cpus))
                   : static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  page_size_ = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  memory_bytes_ = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_size_;
  cpu_model_ = CpuModel();
  cpu_features_ = CpuFeatures();
  user_ = UserName(geteuid());
  cgroup_ = OwnCgroupCount();
}

void ProcessFacts::Fill(format::TraceHeader& header) const {
  header.start_wall_ns = start_wall_ns_;
  header.start_mono_ns = start_mono_ns_;
  format::ProcessInfo& process = header.process;
  process.pid = pid_;
  process.parent_pid = parent_pid_;
  process.hostname = hostname_;
  process.executable = executable_;
  process.executable_build_id = build_id_;
  process.argv.assign(argv_.begin(), argv_.end());
  process.environment.assign(environment_.begin(), environment_.end());
  process.working_directory = working_directory_;
  process.kernel = kernel_;
  process.cpu_count = cpu_count_;
  process.page_size = page_size_;
  process.nccl_path = nccl_path_;
  process.nccl_version = nccl_version_;
  process.masked.assign(masked_.begin(), masked_.end());
  process.masked_by = masked_by_;
  process.cpu_model = cpu_model_;
  process.cpu_features = cpu_features_;
  process.memory_bytes = memory_bytes_;
  process.user = user_;
  process.umask = umask_;
  process.inherited = inherited_;
  process.cgroup_file = cgroup_.file;
  process.oom_kills = cgroup_.oom_kills;
}

}  // namespace deja::recorder
