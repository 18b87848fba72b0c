// RecorderEngine: the recorders of all rooms together, and how the recording begins and ends.
//
// One per process, never destroyed. Any thread, under the guard (preload/process/guard.h). errno is
// left as the real call left it.
#ifndef DEJA_RECORDER_ASSEMBLY_RECORDER_ENGINE_H_
#define DEJA_RECORDER_ASSEMBLY_RECORDER_ENGINE_H_

#include <csignal>
#include <string_view>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/life_calls.h"
#include "recorder/core/recorder.h"
#include "recorder/files/file_recorder.h"
#include "recorder/inputs/input_recorder.h"
#include "recorder/meet/meeting_recorder.h"
#include "recorder/mpi/mpi_recorder.h"
#include "recorder/nccl/nccl_recorder.h"
#include "recorder/sockets/socket_recorder.h"
#include "recorder/steps/step_recorder.h"

namespace deja::recorder {

class RecorderEngine final : private Recorder,
                             public preload::LifeCalls,
                             public NcclRecorder,
                             public MpiRecorder,
                             public FileRecorder,
                             public SocketRecorder,
                             public InputRecorder,
                             public StepRecorder,
                             public MeetingRecorder,
                             public LockRecorder {
 public:
  RecorderEngine(const Config& config, LogFactory make_log);

  void OnThreadStart() override {}  // a thread's stream begins with its first event
  void OnThreadEnd() override;
  void OnCrash(int signal, const siginfo_t* info, void* ucontext) override;
  void OnExit(int code, preload::ExitHow how) override;
  void OnExec(const preload::NextProgram& next) override;
  void OnForkChild() override;
  void OnNotRecorded(std::string_view what, bool may_be, std::string_view function) override;
  void OnFilter(const char* call, bool& for_all) override;

  // Once, when the library is loaded: a process that is recorded for its own sake is a rank now.
  void BeginSingle();
  // Completes the rank's folder. The last thing that is done in a process that ends by itself.
  void Finish();
  // Once, when the library is loaded: children that the C library forks are recorded, too.
  static void WatchForks();

  using Recorder::Active;

 private:
  static Recording* BeforeEnd(Recording* rec);
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_ASSEMBLY_RECORDER_ENGINE_H_
