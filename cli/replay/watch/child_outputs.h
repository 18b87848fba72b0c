// ChildOutputs: what one child of a replayed rank prints, and nothing of the others.
//
// The rank is started with FIFOs that are not shown. The child puts two others in their place
// (replayer/forks/chosen_child.h), which a thread copies to standard output and error until the
// object ends. A process that the child starts prints where the child does. Output that the program
// has redirected is left alone.
//
// Main thread; the process must not fork while it lives, but to exec.
#ifndef DEJA_CLI_REPLAY_WATCH_CHILD_OUTPUTS_H_
#define DEJA_CLI_REPLAY_WATCH_CHILD_OUTPUTS_H_

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/result.h"

namespace deja::cli {

class ChildOutputs {
 public:
  // Makes the FIFOs in `scratch` and begins to copy. `all_to_stderr`: standard output is another's.
  static Result<std::unique_ptr<ChildOutputs>> Make(const std::string& scratch, bool all_to_stderr);
  // Copies what is left.
  ~ChildOutputs();
  ChildOutputs(const ChildOutputs&) = delete;
  ChildOutputs& operator=(const ChildOutputs&) = delete;

  // Standard output and error of the rank.
  [[nodiscard]] std::array<int, 2> of_rank() const { return of_rank_; }

 private:
  explicit ChildOutputs(bool all_to_stderr) : all_to_stderr_(all_to_stderr) {}
  // A FIFO at `path`: sets its ends. False: errno says why not.
  bool MakeFifo(const std::string& path, int& reads, int& writes);
  void Copy();

  const bool all_to_stderr_;
  std::vector<int> open_;
  std::array<int, 2> of_rank_{};
  std::array<int, 2> dropped_{};
  std::array<int, 2> shown_{};
  int stop_ = -1;        // for writing
  int is_stopped_ = -1;  // for reading
  std::thread copier_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_CHILD_OUTPUTS_H_
