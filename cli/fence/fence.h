// Fence: what a replayed program cannot do, put around the process that becomes it.
//
// It is made in the starter and entered in the child before exec, so that it holds whatever the
// program is, and for all that it starts in turn: no new privileges, no capability that changes the
// machine, Landlock (cli/fence/landlock.h) and a filter of system calls (cli/fence/fence_filter.h).
// What the filter asks comes to a FenceKeeper (cli/fence/fence_keeper.h).
//
// Owner: the starter. Main thread; Enter: of a child between fork and exec, which it may be of a
// process with several threads.
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
  int keeper = -1;  // FenceKeeper's socket; -1: nobody answers, and what would be asked is allowed
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
