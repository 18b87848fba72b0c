#include "cli/child_processes.h"

#include <fmt/format.h>

#include <fstream>

namespace deja::cli {

std::vector<pid_t> ChildrenOf(pid_t process, pid_t thread) {
  std::vector<pid_t> children;
  std::ifstream list(fmt::format("/proc/{}/task/{}/children", process, thread));
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

}  // namespace deja::cli
