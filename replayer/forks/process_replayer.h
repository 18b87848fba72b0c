// ProcessReplayer: the processes that a rank makes, by the numbers and with the ends that they had
// in the recording; and a program that sends no signal outside the rank.
//
// One per process, made with the engine, never destroyed. Any thread, within the guard unless its
// interface says otherwise. errno afterwards is the recording's.
#ifndef DEJA_REPLAYER_FORKS_PROCESS_REPLAYER_H_
#define DEJA_REPLAYER_FORKS_PROCESS_REPLAYER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "preload/calls/process_calls.h"
#include "replayer/core/replayer.h"
#include "replayer/forks/children.h"

namespace deja::replayer {

class ProcessReplayer : public preload::ProcessCalls {
 public:
  explicit ProcessReplayer(Replayer& replayer) : replayer_(replayer) {}

  // The process has a session.
  void Begin();
  // In a forked child: its parent's companions are not its own.
  void Abandon() { companions_.clear(); }
  // True of a forked rank, and of a process that forks it, or an ancestor of that.
  [[nodiscard]] bool LeadsToRank(std::string_view name) const;

  bool MayKill(int pid, int signal) override;
  int MapPid(int pid) override;
  int OnChildMade(uint32_t number, int pid, const preload::NextProgram& program) override;
  int SkippedChild(uint32_t number) override;
  int RecordedChildPid(uint32_t number) override;
  void BeforeWait(preload::WaitCall& call) override;
  void AfterWait(preload::WaitCall& call) override;
  bool OnChildSignal(preload::ChildSignalCause cause) override;
  bool BeforeCallAtPlace() override;
  void AfterFileCall() override;
  bool EndsSleep() override;
  void AfterSleep() override { EndsSleep(); }

 protected:
  // The calling thread is about to end the process, as it did in the recording.
  virtual void AwaitOtherThreads() = 0;
  // It is about to send child `pid` the signal that ended it: waits until the child has made all
  // events of its recording. Not where nothing moves in the rank for 2 s.
  virtual void AwaitAllMade(int pid) const = 0;
  // It finds that child `pid` has ended: waits for that, or until `or_else()`. Not where nothing
  // moves in the rank for a minute, or after a divergence for 2 s.
  virtual void AwaitRecordedEnd(int pid, const std::function<bool()>& or_else) const = 0;
  // It has heard that a process has ended: waits until the others have made the meetings that they
  // had made by then (replayer/meet/other_threads.h).
  virtual void AwaitOthersAt(const ThreadState& thread, const MeetingsByThread& met) = 0;

 private:
  void AwaitEnd(int pid, int signal);
  void AwaitExit(int pid, int signal);
  [[nodiscard]] bool HadEndedAtSignal(int recorded);
  bool IsOrHasChild(int pid);
  [[nodiscard]] bool IsWaitEnded(ThreadState& thread);
  bool ServeLook(ThreadState& thread, preload::WaitCall& call);
  void EndCompanions();
  void AwaitEndToHear(preload::WaitCall& call, bool is_found);
  [[nodiscard]] bool HearsLater();
  void AwaitPlaceOfEnd(int pid);

  Replayer& replayer_;
  std::vector<pid_t> companions_;  // that this process has made
  PidMap pids_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_PROCESS_REPLAYER_H_
