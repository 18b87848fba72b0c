// SessionOptions: what a replay is asked for. A value; set before the session is opened.
#ifndef DEJA_REPLAYER_CORE_SESSION_OPTIONS_H_
#define DEJA_REPLAYER_CORE_SESSION_OPTIONS_H_

#include <cstdint>
#include <string>

namespace deja::replayer {

// --clock: which clocks are served as recorded.
enum class ClockMode : uint8_t { kServed, kDay, kLive };

struct SessionOptions {
  std::string folder;
  std::string scratch;
  bool stop_on_divergence = true;
  ClockMode clocks = ClockMode::kServed;
  std::string working_directory;  // of the process when the replay began
  std::string child;              // name of the process below the rank; empty: the rank itself
  std::string child_name;         // the same as listings have it: of a forked rank's, below that
  bool is_before_fork =
      false;  // of a process that has forked the rank, or its ancestor: no end of its own
  bool is_companion =
      false;                // it is, or belongs to, another rank (companions.h): it reports nothing
  int rank_pid = 0;         // of a child: recorded pid of its rank
  uint64_t checkpoint = 0;  // number of the one to start from; 0: from the start
  bool is_late = false;     // the rank starts from one, also if this is one of its children
  uint64_t until_step = 0;  // + 1: the replay ends where it begins; 0: none
  uint32_t until_comm = 0;  // + 1: it ends before the operation until_seq on it; 0: none
  uint64_t until_seq = 0;
  bool hold = false;  // there it does not end, but waits for a file (kGoOnFile), and goes on
  std::string fold;  // folder where the replayed ranks meet to compute (fold.h); empty: they do not
  // A trace of what the program does is to be made there, of a job with this id; empty: none is.
  std::string out;
  std::string job_id;
  std::string recording;  // as the user named it
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_SESSION_OPTIONS_H_
