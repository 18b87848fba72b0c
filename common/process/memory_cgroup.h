// The memory cgroup of a process, and how many of its processes the kernel's OOM killer has ended.
//
// Only the kernel's count tells whether SIGKILL came from the memory limit. A process notes the
// count when it begins; the process that completes its folder reads it again. Plain values; any
// thread. Versions 1 and 2 of cgroups as the kernel's documentation has them
// (admin-guide/cgroup-v1/memory, cgroup-v2).
#ifndef DEJA_COMMON_PROCESS_MEMORY_CGROUP_H_
#define DEJA_COMMON_PROCESS_MEMORY_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deja {

struct CgroupCount {
  std::string file;        // memory.events or memory.oom_control; empty: there is none to be seen
  uint64_t oom_kills = 0;  // that it had counted
};

// Reads the calling process's counts.
CgroupCount OwnCgroupCount();

// The count that `file` has now; nothing if it is gone, or has none.
std::optional<uint64_t> OomKills(const std::string& file);

// The files in which the cgroup's count may be, best first. `membership`: /proc/PID/cgroup's text.
// In a container the path may be one of the machine's, where only the root of what is mounted is
// the container's own.
std::vector<std::string> CgroupFiles(std::string_view membership);

}  // namespace deja

#endif  // DEJA_COMMON_PROCESS_MEMORY_CGROUP_H_
