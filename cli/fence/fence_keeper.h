// FenceKeeper: answers what the filters of replayed programs ask (cli/fence/fence_filter.h), on a
// thread of its own, as long as it lives.
//
// A program that asks waits for its answer. If its keeper is gone, the program gets ENOSYS. Objects
// that are created for the programs outside of file systems (System V objects, message queues) are
// removed with the keeper.
//
// Owner: the command that starts replays; it outlives them. Main thread.
#ifndef DEJA_CLI_FENCE_FENCE_KEEPER_H_
#define DEJA_CLI_FENCE_FENCE_KEEPER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/result.h"

namespace deja::cli {

class FenceAnswers;

class FenceKeeper {
 public:
  FenceKeeper();
  ~FenceKeeper();
  FenceKeeper(const FenceKeeper&) = delete;
  FenceKeeper& operator=(const FenceKeeper&) = delete;

  // `own`: the folders whose files belong to the replay; absolute, without symbolic links.
  Status Start(std::vector<std::string> own);

  // Where a child sends the listener of its filter; -1 before Start.
  [[nodiscard]] int socket() const { return sockets_[1]; }

 private:
  void Run();
  void TakeListener(std::vector<int>& listeners) const;

  int sockets_[2] = {-1, -1};
  int stop_ = -1;  // an eventfd
  std::unique_ptr<FenceAnswers> answers_;
  std::thread thread_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_FENCE_KEEPER_H_
