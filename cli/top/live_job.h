// LiveJob: the ranks of a trace that is being written, read again and again.
//
// Ranks that come later are found. The last attempt is read. Nothing is attached to
// and nothing is written. One thread.
#ifndef DEJA_CLI_TOP_LIVE_JOB_H_
#define DEJA_CLI_TOP_LIVE_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/top/live_rank.h"
#include "common/result.h"
#include "format/reader/live_events.h"
#include "format/trace/trace.h"

namespace deja::cli {

class LiveJob {
 public:
  // `path`: a directory, or a bundle, which does not change. An error if it is neither.
  static Result<LiveJob> Open(const std::string& path);

  // Reads what is new. Errors of single ranks become notes.
  void Poll();

  // By rank.
  [[nodiscard]] const std::vector<LiveRank>& ranks() const { return shown_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // Ranks of whose recordings part cannot be read, and what that is.
  [[nodiscard]] std::map<uint32_t, std::string> Damage() const;
  // A process of the recording runs, here or, as far as its recording tells, on another machine.
  [[nodiscard]] bool is_running() const;

 private:
  struct Read {
    std::unique_ptr<format::LiveEvents> events;
    LiveRank state;
    std::string damage;           // why it cannot be opened, if that is damage
    uint64_t quiet_since_ns = 0;  // nothing came since then, by this machine's monotonic clock
  };

  void FindRanks();
  void PollRank(Read& its, const std::string& folder);

  std::string directory_;
  std::unique_ptr<format::Trace> bundle_;  // null: a directory
  std::map<std::string, Read> read_;       // by folder
  std::vector<LiveRank> shown_;
  std::vector<std::string> notes_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_TOP_LIVE_JOB_H_
