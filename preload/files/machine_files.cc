#include "preload/files/machine_files.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "preload/files/absolute_path.h"

namespace deja::preload {
namespace {

constexpr MachineFile kTable[] = {
    {"/proc/cpuinfo", "number, model and flags of the CPUs"},
    {"/proc/stat", "number of CPUs, time of the boot"},
    {"/proc/meminfo", "size of the memory"},
    {"/proc/version", "the kernel"},
    {"/proc/loadavg", "how busy the machine is"},
    {"/proc/uptime", "how long it has been running"},
    {"/proc/filesystems", "what the kernel can do"},
    {"/proc/mounts", "where control groups are"},
    {"/proc/cgroups", "which control groups there are"},
    {"/proc/self/status", "ids of the process, CPUs and nodes that it may use"},
    {"/proc/self/stat", "ids and times of the process"},
    {"/proc/self/statm", "memory of the process"},
    {"/proc/self/cgroup", "the control group, and with it its limits"},
    {"/proc/self/limits", "limits of the process"},
    {"/proc/self/mountinfo", "where control groups are"},
    {"/proc/self/mounts", "where control groups are"},
    {"/proc/self/loginuid", "who logged in"},
    {"/proc/sys/kernel/random/uuid", "a new random number at each open", true},
    {"/proc/sys/kernel/*", "name of the host, release of the kernel, number of this boot"},
    {"/proc/sys/vm/*", "huge pages, overcommitment"},
    {"/proc/sys/fs/*", "limits of the machine"},
    {"/sys/devices/system/cpu*", "number, topology, caches and speed of the CPUs"},
    {"/sys/devices/system/node*", "NUMA nodes"},
    {"/sys/fs/cgroup*", "limits on CPUs and memory"},
    {"/sys/kernel/mm/*", "huge pages"},
    {"/sys/class/dmi/id/*", "the machine's model"},
    {"/etc/hostname", "name of the host"},
    {"/etc/machine-id", "number of the installation"},
    {"/var/lib/dbus/machine-id", "number of the installation"},
    {"/etc/os-release", "the distribution"},
    {"/usr/lib/os-release", "the distribution"},
    {"/etc/lsb-release", "the distribution"},
    {"/etc/debian_version", "the distribution"},
    {"/etc/timezone", "the time zone"},
    {"/etc/localtime", "the time zone, where the program reads it itself"},
};

// Only at the end of a pattern.
bool Matches(std::string_view path, std::string_view pattern) {
  if (pattern.back() != '*') return path == pattern;
  pattern.remove_suffix(1);
  return path.substr(0, pattern.size()) == pattern;
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool MayBeMachineFile(std::string_view path) {
  return StartsWith(path, "/proc") || StartsWith(path, "/sys") || StartsWith(path, "/etc/") ||
         StartsWith(path, "/var/lib/dbus/") || StartsWith(path, "/usr/lib/os-release");
}

// "/proc/NUMBER/x" as "/proc/self/x", in place; likewise "/proc/thread-self/x", which says the same
// of the machine.
size_t WithSelf(std::span<char> buffer, size_t size, int pid, int other_pid) {
  constexpr std::string_view kProc = "/proc/";
  const std::string_view name(buffer.data(), size);
  if (!StartsWith(name, kProc)) return size;
  const size_t end = std::min(name.find('/', kProc.size()), size);
  const std::string_view who = name.substr(kProc.size(), end - kProc.size());
  bool own = who == "thread-self";
  for (int number : {pid, other_pid}) {
    char text[16];
    const int digits = snprintf(text, sizeof text, "%d", number);
    own = own || (number != 0 && who == std::string_view(text, static_cast<size_t>(digits)));
  }
  constexpr std::string_view kSelf = "self";
  if (!own || size - who.size() + kSelf.size() > buffer.size()) return size;
  std::memmove(buffer.data() + kProc.size() + kSelf.size(), buffer.data() + end, size - end);
  std::memcpy(buffer.data() + kProc.size(), kSelf.data(), kSelf.size());
  return size - who.size() + kSelf.size();
}

// "<served>NUMBER/x" as "/x", in place.
size_t WithoutServed(std::span<char> buffer, size_t size, std::string_view served) {
  const std::string_view path(buffer.data(), size);
  if (served.empty() || !StartsWith(path, served)) return size;
  const size_t name = path.find('/', served.size());
  if (name == std::string_view::npos) return size;
  std::memmove(buffer.data(), buffer.data() + name, size - name);
  return size - name;
}

}  // namespace

std::span<const MachineFile> MachineFiles() {
  return kTable;
}

const MachineFile* FindMachineFile(std::string_view path) {
  const auto* found = std::find_if(std::begin(kTable), std::end(kTable), [path](const auto& file) {
    return Matches(path, file.pattern);
  });
  return found == std::end(kTable) ? nullptr : found;
}

std::string_view MachineName(int dirfd, const char* path, const MachineNaming& naming,
                             std::span<char> buffer) {
  size_t size = 0;
  if (path[0] != '/') {
    // Relative to the working directory: programs do not go into /sys to look around.
    if (dirfd == AT_FDCWD) return {};
    size = PathOfDescriptor(dirfd, buffer).size();
    if (size == 0) return {};
    size = WithoutServed(buffer, size, naming.served);
    if (size == 1) size = 0;  // the root
  } else if (!MayBeMachineFile(path)) {
    return {};
  }
  if (!AppendPath(path, buffer, size)) return {};
  size = WithSelf(buffer, size, naming.pid, naming.other_pid);
  const std::string_view name(buffer.data(), size);
  return MayBeMachineFile(name) ? name : std::string_view();
}

uint64_t MachineKey(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

}  // namespace deja::preload
