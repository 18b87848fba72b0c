// FenceAnswers: the results of a replayed program's system calls that its filter asks about.
//
// No decision depends on memory that the program could change meanwhile. A call that depends on a
// path or an address is made here, on descriptors of our own, and the program gets the result. A
// call that its registers fully describe goes on in the kernel.
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
