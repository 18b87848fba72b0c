// Session: one replay. It holds what is to be replayed, and the plan of it. Its parts, each a class
// of its own, follow and report what the program does.
//
// Made once by the engine, never destroyed. What it points to is constant or locks for itself;
// ThreadState belongs to its thread. What one kind of call needs lies in the room of that kind, as
// a part (parts.h).
#ifndef DEJA_REPLAYER_CORE_SESSION_H_
#define DEJA_REPLAYER_CORE_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/reader/rank_reader.h"
#include "replayer/core/divergence_reporter.h"
#include "replayer/core/made_calls.h"
#include "replayer/core/operation_counts.h"
#include "replayer/core/parts.h"
#include "replayer/core/progress.h"
#include "replayer/core/session_options.h"
#include "replayer/core/stops.h"
#include "replayer/core/thread_state.h"
#include "replayer/plan/payload_source.h"
#include "replayer/plan/replay_plan.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/report.h"

namespace deja::replayer {

// What jumps with the program to the position after the checkpoint that a replay starts from.
class LateStarter {
 public:
  // Adds what would be missing after it. Nothing has jumped yet.
  virtual void FindMissing(std::vector<std::string>& problems) { (void)problems; }
  virtual void StartLate(const LateStart& start) = 0;

 protected:
  ~LateStarter() = default;
};

class Session {
 public:
  // Null after an error has been reported. It has no parts of rooms yet.
  static Session* Open(const SessionOptions& options);

  [[nodiscard]] const ReplayPlan& plan() const { return *plan_; }
  PayloadSource& payloads() { return *payloads_; }
  // How far the program is.
  Progress& progress() { return *progress_; }
  [[nodiscard]] const Progress& progress() const { return *progress_; }
  // What it does otherwise.
  DivergenceReporter& divergences() { return *divergences_; }
  [[nodiscard]] const DivergenceReporter& divergences() const { return *divergences_; }
  // Where it is, and stops.
  Stops& stops() { return *stops_; }
  MadeCalls& made_calls() { return *made_calls_; }
  // Null: the replay leaves no trace of its own.
  [[nodiscard]] LiveTrace* live_trace() const { return live_trace_; }
  [[nodiscard]] const Report& report() const { return report_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  // Recorded pid of the rank that this process is, or belongs to.
  [[nodiscard]] int rank_pid() const {
    return options_.rank_pid != 0 ? options_.rank_pid : static_cast<int>(plan_->pid);
  }

  // What the room of `Part` keeps; null: there is none. Set before the program begins.
  template <typename Part>
  [[nodiscard]] Part* Find() const {
    return parts_.Find<Part>();
  }
  template <typename Part>
  void SetPart(Part* part) {
    parts_.Set(part);
  }
  // The communicators of the replay. Set before the program begins.
  [[nodiscard]] const OperationCounts& operations() const { return *operations_; }
  void SetOperations(const OperationCounts* operations) { operations_ = operations; }

  // The calling thread's state.
  ThreadState& Thread();

  // Before the program begins.
  void AddLateStarter(LateStarter* starter) { late_starters_.push_back(starter); }
  [[nodiscard]] const std::vector<LateStarter*>& late_starters() const { return late_starters_; }
  // The program is at its first step with the state of the checkpoint. All positions jump to the
  // one after it. Other threads jump when they next ask for something.
  void StartLate();
  [[nodiscard]] bool started_late() const { return started_late_.load(); }

  // Ends the replay where the user wanted it to end, or waits there.
  void EndAsAsked(std::string_view where);

  // A line "failed" in the report and on stderr.
  static void ReportFailure(const Report& report, std::string_view message);

 private:
  Session() = default;
  Status ReadPlan();
  void CatchUp(ThreadState& thread) const;

  SessionOptions options_;
  Report report_;
  std::unique_ptr<format::RankReader> reader_;
  std::unique_ptr<ReplayPlan> plan_;
  std::unique_ptr<PayloadSource> payloads_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Stops> stops_;
  std::unique_ptr<DivergenceReporter> divergences_;
  std::unique_ptr<MadeCalls> made_calls_;
  LiveTrace* live_trace_ = nullptr;
  Parts<SessionPart> parts_;
  const OperationCounts* operations_ = nullptr;
  std::vector<LateStarter*> late_starters_;
  std::atomic<bool> started_late_{false};
};

// How the api tables sort calls.
CallKind KindOfCall(uint32_t api);
// "AllReduce" for ncclAllReduce, "allreduce" for c10d_allreduce.
const char* ShortName(const char* name);
std::string ApiText(uint32_t api);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_SESSION_H_
