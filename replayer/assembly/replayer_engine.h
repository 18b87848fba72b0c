// ReplayerEngine: the replayers of all rooms together, and how a replay begins and ends in a
// process.
//
// One per process, made on first use, never destroyed. It serves everything in the process that is
// the replayed rank. So it does in a child whose recording the trace has (children.h finds it by
// the child's name). Other children run live, kept inside the scratch folder; what they ask about
// themselves is answered from what their parent knows.
#ifndef DEJA_REPLAYER_ASSEMBLY_REPLAYER_ENGINE_H_
#define DEJA_REPLAYER_ASSEMBLY_REPLAYER_ENGINE_H_

#include <csignal>
#include <functional>
#include <string>
#include <string_view>

#include "preload/calls/life_calls.h"
#include "replayer/core/ending.h"
#include "replayer/core/replayer.h"
#include "replayer/files/file_replayer.h"
#include "replayer/forks/forks.h"
#include "replayer/forks/process_replayer.h"
#include "replayer/inputs/input_replayer.h"
#include "replayer/meet/meeting_replayer.h"
#include "replayer/mpi/mpi_replayer.h"
#include "replayer/nccl/nccl_replayer.h"
#include "replayer/sockets/socket_replayer.h"
#include "replayer/steps/step_replayer.h"

namespace deja::replayer {

class ReplayerEngine final : private Replayer,
                             public preload::LifeCalls,
                             public NcclReplayer,
                             public MpiReplayer,
                             public FileReplayer,
                             public SocketReplayer,
                             public InputReplayer,
                             public StepReplayer,
                             public ProcessReplayer,
                             public MeetingReplayer,
                             public LockReplayer,
                             private SignalledChild {
 public:
  // Null if the environment does not say what to replay.
  static ReplayerEngine* Create();
  // Once all libraries are loaded: the program's allocator may be asked.
  void OnLoaded();

  void OnThreadStart() override {}
  void OnThreadEnd() override;
  void OnCrash(int signal, const siginfo_t* info, void* ucontext) override;
  void OnExit(int code, preload::ExitHow how) override;
  void OnExec(const preload::NextProgram& next) override;
  void OnForkChild() override;
  void OnNotRecorded(std::string_view what, bool may_be, std::string_view function) override;
  void OnFilter(const char* call, bool& for_all) override;
  [[nodiscard]] bool HasHiddenFilter() const override { return true; }  // the fence

 private:
  ReplayerEngine();
  void Begin();
  // In an image of the process that goes on (forks.h).
  void BecomeThisProcess();
  // In an image that goes on, whose other threads wait.
  void Renumber();
  // The folder of the rank that this process is, or belongs to.
  [[nodiscard]] std::string RankFolder() const;
  // This process is, or belongs to, another rank. Returns when its parent needs it.
  void BecomeCompanion(bool is_rank);
  // Makes the session of a child, if the trace has its recording.
  void OpenChild();
  // The calling thread of a child is about to end the process, as it did in the recording. Waits
  // until the other threads have met other processes as often as they did. A loader's worker that
  // dies has handed over some batches by then.
  void AwaitOtherThreads() override;
  // Lets other threads go on while `are_left()`: they have something to do for other processes. Not
  // where nothing moves in the rank for long.
  void ServeOthers(const std::function<bool()>& are_left) const;
  // Nothing is left for it that other processes of the rank had of this one.
  [[nodiscard]] bool IsEverybodyServed();
  void OnAllMade() override;
  // The process that sends the signal may need this one before, and others what it has still to do
  // for them. It has time while the rank moves.
  void AwaitSignal() override;
  void EndAsChild(int code);
  void AwaitAllMade(int pid) const override;
  void AwaitRecordedEnd(int pid, const std::function<bool()>& or_else) const override;
  void AwaitOthersAt(const ThreadState& thread, const MeetingsByThread& met) override;

  bool follows_parent_ = false;  // forked by one that is a companion, or may make some
  bool all_is_made_ = false;     // and said so
  Forks* images_ = nullptr;      // null where there is no session
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_ASSEMBLY_REPLAYER_ENGINE_H_
