#include "cli/fence/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "common/os/folder_entries.h"

namespace deja::cli {
namespace {

// <linux/landlock.h>, in our own words: the headers of Debian 12 know less than its kernels.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr uint32_t kVersionFlag = 1;
constexpr int kPathBeneath = 1;

struct RulesetAttr {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;  // ABI 4
  uint64_t scoped;              // ABI 6
};

struct __attribute__((packed)) PathBeneathAttr {
  uint64_t allowed_access;
  int32_t parent_fd;
};

constexpr uint64_t kExecute = 1u << 0;
constexpr uint64_t kWriteFile = 1u << 1;
constexpr uint64_t kReadFile = 1u << 2;
constexpr uint64_t kReadDir = 1u << 3;
constexpr uint64_t kRemoveDir = 1u << 4;
constexpr uint64_t kRemoveFile = 1u << 5;
constexpr uint64_t kMakeAll = 0x7fu << 6;  // char, dir, reg, sock, fifo, block, sym
constexpr uint64_t kMakeDevices = 1u << 6 | 1u << 11;
constexpr uint64_t kRefer = 1u << 13;     // ABI 2
constexpr uint64_t kTruncate = 1u << 14;  // ABI 3
constexpr uint64_t kRightsOfFiles = kExecute | kWriteFile | kReadFile | kTruncate;
constexpr uint64_t kReads = kExecute | kReadFile | kReadDir;
constexpr uint64_t kTcpBindConnect = 3;
constexpr uint64_t kScopeAbstractUnix = 1;
constexpr uint64_t kScopeSignal = 2;

void Allow(int ruleset, const std::string& path, uint64_t access) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info {};
  if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) access &= kRightsOfFiles;
  const PathBeneathAttr attr{access, fd};
  if (access != 0) syscall(kAddRule, ruleset, kPathBeneath, &attr, 0);
  close(fd);
}

// A CUDA driver opens its devices for writing: nvidia0, nvidiactl, nvidia-uvm, nvidia-caps/…, and
// dxg where Windows has the GPU.
void AllowGpus(int ruleset, const std::string& devices, uint64_t access) {
  ForEachEntry(devices.c_str(), [&](const char* entry, int) {
    const std::string_view name = entry;
    if (name.substr(0, 6) == "nvidia" || name == "dxg")
      Allow(ruleset, devices + "/" + entry, access);
    return true;
  });
}

void AllowDevices(int ruleset, const std::string& devices, uint64_t access) {
  AllowGpus(ruleset, devices, access);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx",
                             "/dev/pts", "/dev/random", "/dev/urandom"})
    Allow(ruleset, device, access);
}

}  // namespace

int LandlockAbi() {
  const long abi = syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  return abi < 1 ? 0 : static_cast<int>(abi);
}

int MakeLandlockRuleset(const LandlockRules& rules) {
  const int abi = LandlockAbi();
  if (abi == 0) return -1;
  uint64_t writes = kWriteFile | kRemoveDir | kRemoveFile | kMakeAll;
  if (abi >= 2) writes |= kRefer;
  if (abi >= 3) writes |= kTruncate;
  RulesetAttr attr{};
  size_t size = sizeof(uint64_t);
  attr.handled_access_fs = (rules.fence_writes ? writes : 0) | (rules.fence_reads ? kReads : 0);
  if (abi >= 4) {
    attr.handled_access_net = rules.fence_network ? kTcpBindConnect : 0;
    size = 2 * sizeof(uint64_t);
  }
  if (abi >= 6) {
    attr.scoped = kScopeSignal | (rules.fence_network ? kScopeAbstractUnix : 0);
    size = sizeof attr;
  }
  if (attr.handled_access_fs == 0 && attr.handled_access_net == 0 && attr.scoped == 0) return -1;
  const int ruleset = static_cast<int>(syscall(kCreateRuleset, &attr, size, 0));
  if (ruleset < 0 || attr.handled_access_fs == 0) return ruleset;
  const uint64_t handled = attr.handled_access_fs;
  // A device that root makes would lead out.
  for (const std::string& path : rules.writable) Allow(ruleset, path, handled & ~kMakeDevices);
  if (rules.fence_reads)
    for (const std::string& path : rules.readable) Allow(ruleset, path, kReads);
  AllowDevices(ruleset, rules.devices, handled & (kRightsOfFiles | kReadDir));
  return ruleset;
}

bool EnterLandlock(int ruleset) noexcept {
  if (ruleset < 0) return false;
  // Names of threads and the like. Rules that this kernel, or this ruleset, does not know fail.
  const int self = open("/proc/self", O_PATH | O_CLOEXEC);
  for (const uint64_t access : {kWriteFile, kWriteFile | kTruncate}) {
    const PathBeneathAttr attr{access, self};
    syscall(kAddRule, ruleset, kPathBeneath, &attr, 0);
  }
  close(self);
  return syscall(kRestrictSelf, ruleset, 0) == 0;
}

}  // namespace deja::cli
