// Replayer: what the replayers of all rooms know together. That is the session of this process, if
// it has one, and what it may do outside the replay.
//
// One per process, made with the engine, never destroyed. Set before the program begins and in
// forked children, otherwise constant. Any thread.
#ifndef DEJA_REPLAYER_CORE_REPLAYER_H_
#define DEJA_REPLAYER_CORE_REPLAYER_H_

#include <atomic>
#include <string>

#include "replayer/core/session.h"
#include "replayer/plan/replay_plan.h"
#include "replayer/report/report.h"

namespace deja::replayer {

class Replayer {
 public:
  Session* session = nullptr;             // null in children that the trace does not have
  const ReplayPlan* inherited = nullptr;  // of the process that forked this one
  std::string scratch;                    // folder of this replay
  Report report;
  bool allow_writes = false;
  bool allow_network = false;
  bool fenced_reads = false;
  std::atomic<int> live_pid{0};
  int root_pid = 0;    // of the rank
  std::string forked;  // name of the rank, if it is a forked child of the process that began

  // Says that the program was refused something. `option`: what would have allowed it; null:
  // nothing does.
  void Refuse(const char* what, const char* target, const char* option) const;
  // Says once that this process asks the machine, because the trace has no recording of it.
  void ReportLive();
  // In a forked child, which has said nothing yet.
  void ForgetReports() { live_told_.store(false); }

 private:
  std::atomic<bool> live_told_{false};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_REPLAYER_H_
