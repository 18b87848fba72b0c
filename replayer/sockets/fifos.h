// Which FIFOs of the recorded run are live in a replay, and which are served.
//
// A FIFO does not tell which process is at its other end. The recordings of all processes of the
// rank together do. If one of them has written and one has read, both ends run again, and the FIFO
// is the kernel's. Having opened it for that counts as well. Where only one direction is theirs,
// the other end was outside the rank: what came in is served, what goes out is swallowed.
//
// Values; not thread-safe. Nothing is read for a process that uses no FIFO.
#ifndef DEJA_REPLAYER_SOCKETS_FIFOS_H_
#define DEJA_REPLAYER_SOCKETS_FIFOS_H_

#include <map>
#include <string>
#include <string_view>

#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class Fifos {
 public:
  Fifos() = default;
  // For the process whose recording `plan` is. `rank` is the folder of its rank; `scratch` names
  // those of the rank's children.
  Fifos(const ReplayPlan& plan, const std::string& rank, const std::string& scratch);

  // The process uses one.
  [[nodiscard]] bool any() const { return !paths_.empty(); }
  // The connection of this name is a FIFO between processes of the rank.
  [[nodiscard]] bool IsLive(std::string_view connection) const;

  struct Use {
    bool read = false;
    bool written = false;
    bool made = false;  // by the run
    [[nodiscard]] bool is_live() const { return read && written; }
  };
  // By path.
  [[nodiscard]] const std::map<std::string, Use, std::less<>>& paths() const { return paths_; }

 private:
  void AddRecording(const std::string& folder);

  std::map<std::string, Use, std::less<>> paths_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_FIFOS_H_
