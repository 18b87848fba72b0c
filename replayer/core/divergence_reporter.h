// DivergenceReporter: says what the program does otherwise than in the recording, counts what was
// compared, and ends the replay where that is asked for.
//
// Belongs to the session. Any thread, within the guard.
#ifndef DEJA_REPLAYER_CORE_DIVERGENCE_REPORTER_H_
#define DEJA_REPLAYER_CORE_DIVERGENCE_REPORTER_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replayer/core/progress.h"
#include "replayer/core/session_options.h"
#include "replayer/core/stops.h"
#include "replayer/plan/replay_plan.h"
#include "replayer/report/divergence.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/report.h"

namespace deja::replayer {

class DivergenceReporter {
 public:
  // All of them outlive it. `live_trace`: null, or where divergences are noted.
  DivergenceReporter(const SessionOptions& options, const ReplayPlan& plan,
                     const Progress& progress, Stops& stops, const Report& report,
                     LiveTrace* live_trace)
      : options_(options),
        plan_(plan),
        progress_(progress),
        stops_(stops),
        report_(report),
        live_trace_(live_trace) {}

  // Fills in what every divergence says about where it is: the calling thread.
  [[nodiscard]] static Divergence New(DivergenceKind kind);
  // Reports `divergence`. Returns if the replay goes on (--on-divergence=warn).
  void Diverge(ThreadState& thread, Divergence divergence, uint32_t recorded_stack);
  // Reports that the program sends something else than it did. The replay goes on: no process
  // receives it.
  void ReportSent(std::string what);

  void CountCompared(bool equal);
  // Operations were computed by the replayed ranks.
  void CountComputed(uint64_t operations) { computed_.fetch_add(operations); }
  [[nodiscard]] CountersPart CountersNow() const;

  // Frames of a recorded stack, by path.
  [[nodiscard]] std::vector<StackLine> RecordedStack(uint32_t stack) const;

 private:
  const SessionOptions& options_;
  const ReplayPlan& plan_;
  const Progress& progress_;
  Stops& stops_;
  const Report& report_;
  LiveTrace* const live_trace_;
  std::atomic<uint32_t> divergences_{0};
  std::atomic<uint64_t> computed_{0};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_DIVERGENCE_REPORTER_H_
