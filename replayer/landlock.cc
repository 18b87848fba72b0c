#include "replayer/landlock.h"

#include "common/folder_entries.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace deja::replayer {
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

constexpr uint64_t kWriteFile = 1u << 1;
constexpr uint64_t kRemoveDir = 1u << 4;
constexpr uint64_t kRemoveFile = 1u << 5;
constexpr uint64_t kMakeAll = 0x7fu << 6;  // char, dir, reg, sock, fifo, block, sym
constexpr uint64_t kRefer = 1u << 13;      // ABI 2
constexpr uint64_t kTruncate = 1u << 14;   // ABI 3
constexpr uint64_t kTcpBindConnect = 3;
constexpr uint64_t kScopeAbstractUnix = 1;
constexpr uint64_t kScopeSignal = 2;

void Allow(int ruleset, const char* path, uint64_t access) {
  const int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  const PathBeneathAttr attr{access, fd};
  syscall(kAddRule, ruleset, kPathBeneath, &attr, 0);
  close(fd);
}

// A CUDA driver opens its devices for writing: nvidia0, nvidiactl, nvidia-uvm, nvidia-caps/…, and
// dxg where Windows has the GPU.
void AllowGpus(int ruleset, const char* devices, uint64_t write) {
  ForEachEntry(devices, [&](const char* name, int) {
    if (std::strncmp(name, "nvidia", 6) != 0 && std::strcmp(name, "dxg") != 0) return true;
    char path[PATH_MAX];
    const int length = std::snprintf(path, sizeof path, "%s/%s", devices, name);
    if (length > 0 && static_cast<size_t>(length) < sizeof path) Allow(ruleset, path, write);
    return true;
  });
}

void AllowFiles(int ruleset, const char* writable, const char* devices, uint64_t access) {
  Allow(ruleset, writable, access);
  const uint64_t write = access & (kWriteFile | kTruncate);
  AllowGpus(ruleset, devices, write);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx",
                             "/dev/pts", "/dev/random", "/dev/urandom"})
    Allow(ruleset, device, write);
  Allow(ruleset, "/proc/self", write);  // thread names and the like
}

}  // namespace

LandlockState Restrict(const char* writable, const FenceOptions& options) {
  LandlockState state;
  const long abi = syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  if (abi < 1) return state;
  RulesetAttr attr{};
  attr.handled_access_fs = kWriteFile | kRemoveDir | kRemoveFile | kMakeAll;
  size_t size = sizeof(uint64_t);
  if (abi >= 2) attr.handled_access_fs |= kRefer;
  if (abi >= 3) attr.handled_access_fs |= kTruncate;
  if (options.allow_writes) attr.handled_access_fs = 0;
  if (abi >= 4) {
    attr.handled_access_net = options.allow_network ? 0 : kTcpBindConnect;
    size = 2 * sizeof(uint64_t);
  }
  if (abi >= 6 && !options.inside) {
    attr.scoped = kScopeSignal | (options.allow_network ? 0 : kScopeAbstractUnix);
    size = sizeof attr;
  }
  if (attr.handled_access_fs == 0 && attr.handled_access_net == 0 && attr.scoped == 0) return state;
  const int ruleset = static_cast<int>(syscall(kCreateRuleset, &attr, size, 0));
  if (ruleset < 0) return state;
  if (attr.handled_access_fs != 0)
    AllowFiles(ruleset, writable, options.devices, attr.handled_access_fs);
  for (const char* folder : {options.also_writable, options.meeting})
    if (attr.handled_access_fs != 0 && folder != nullptr)
      Allow(ruleset, folder, attr.handled_access_fs);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(kRestrictSelf, ruleset, 0) == 0) {
    state.abi = static_cast<int>(abi);
    state.files = attr.handled_access_fs != 0;
    state.tcp = attr.handled_access_net != 0;
    state.signals = abi >= 6;
  }
  close(ruleset);
  return state;
}

}  // namespace deja::replayer
