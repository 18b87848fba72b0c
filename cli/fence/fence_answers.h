// FenceAnswers: what a replayed program's system calls come to that its filter asks about.
//
// Nothing is decided by memory that the program could change meanwhile: what depends on a path or
// an address is done here, on descriptors of our own, and the program gets the result. Calls whose
// registers say all go on in the kernel.
//
// Owner: FenceKeeper; its thread.
#ifndef DEJA_CLI_FENCE_FENCE_ANSWERS_H_
#define DEJA_CLI_FENCE_FENCE_ANSWERS_H_

#include <string>
#include <vector>

#include "cli/fence/fence_objects.h"

namespace deja::cli {

class FenceAnswers {
 public:
  explicit FenceAnswers(std::vector<std::string> own);

  // Takes one question from `listener` and answers it.
  void Answer(int listener);

 private:
  const std::vector<std::string> own_;
  FenceObjects objects_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_FENCE_ANSWERS_H_
