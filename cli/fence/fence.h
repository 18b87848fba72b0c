// Fence: what a replayed program cannot do, put around the process that becomes it.
//
// The starter makes it, and the child enters it before exec. So it holds whatever the program is,
// and for all processes that the program starts. It has four parts:
// - no new privileges
// - no capability that changes the machine
// - Landlock (cli/fence/landlock.h)
// - a filter of system calls (cli/fence/fence_filter.h), whose questions a FenceKeeper answers
// (cli/fence/fence_keeper.h)
//
// Owner: the starter. Main thread. Enter is for a child between fork and exec; its parent may have
// several threads.
#ifndef DEJA_CLI_FENCE_FENCE_H_
#define DEJA_CLI_FENCE_FENCE_H_

#include <linux/filter.h>

#include <string>
#include <vector>

namespace deja::cli {

struct FenceRules {
  std::vector<std::string> writable;  // folders and files; the first is the replay's own folder
  std::vector<std::string> readable;  // besides these, where reading is fenced
  bool fence_reads = false;
  bool allow_writes = false;
  bool allow_network = false;
  int keeper = -1;  // FenceKeeper's socket; -1: no keeper, and what would be asked is allowed
};

class Fence {
 public:
  explicit Fence(const FenceRules& rules);
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  // What of it this kernel has.
  [[nodiscard]] bool has_files() const { return ruleset_ >= 0; }

  // All but standard input, output and error is closed at exec. False, with errno: the filter could
  // not be put in force, and the program must not be started. Allocates nothing.
  [[nodiscard]] bool Enter() const noexcept;

 private:
  int ruleset_ = -1;
  int keeper_ = -1;
  bool appends_ = false;
  std::vector<sock_filter> filter_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_FENCE_H_
