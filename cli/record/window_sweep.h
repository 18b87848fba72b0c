// WindowSweep: the window of payloads moves on for processes that have ended.
//
// A process that records drops its own old payloads. The `deja record` that outlives child
// processes drops theirs:
// - what no rank's window holds any more (WindowBoard)
// - what is older than --keep-seconds
// - the oldest of all, when children have used most of their part of the disk budget up
// (DiskLedger)
//
// What earlier attempts of a rank keep is bounded by AttemptSweep.
//
// Owner: `deja record`. One thread.
#ifndef DEJA_CLI_RECORD_WINDOW_SWEEP_H_
#define DEJA_CLI_RECORD_WINDOW_SWEEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/record/attempt_sweep.h"
#include "format/window/disk_ledger.h"
#include "format/window/window_board.h"
#include "format/wire/messages.h"

namespace deja::cli {

class WindowSweep {
 public:
  WindowSweep(std::string directory, std::string job_id, uint64_t keep_steps, uint64_t keep_seconds)
      : directory_(std::move(directory)),
        job_id_(std::move(job_id)),
        keep_steps_(keep_steps),
        keep_seconds_(keep_seconds),
        attempts_(directory_) {}

  // While the job runs, now and then.
  void Pass();
  // When its processes are gone and their folders complete: the window is what it was at their end.
  void Finish();

 private:
  void FindMappings();
  void FindFinished();
  void DropExpired(bool running);
  void StayWithinPool();
  [[nodiscard]] bool IsExpired(const std::string& folder, const format::Segment& segment,
                               bool running) const;
  // In seconds since the epoch.
  [[nodiscard]] static int64_t LastWritten(const std::string& folder,
                                           const format::Segment& segment);

  const std::string directory_;
  const std::string job_id_;
  const uint64_t keep_steps_;
  const uint64_t keep_seconds_;
  AttemptSweep attempts_;
  const format::WindowBoard* board_ = nullptr;
  std::unique_ptr<format::DiskLedger> ledger_;
  std::map<std::string, std::vector<format::Segment>> finished_;  // folders of children
};

}  // namespace deja::cli

#endif  // DEJA_CLI_RECORD_WINDOW_SWEEP_H_
