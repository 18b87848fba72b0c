#include "recorder/assembly/recorder_engine.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "format/layout/mark.h"
#include "preload/cuda/device.h"
#include "preload/meet/lock_order.h"
#include "preload/stack/stack.h"
#include "recorder/assembly/whole_recording.h"
#include "recorder/core/masked_program.h"
#include "recorder/files/opened_input.h"

namespace deja::recorder {
namespace {

constexpr size_t kMaxReason = 2000;

// Set in a child that the C library has forked. A child of _Fork or of a bare clone may do what a
// signal handler may; it is not recorded.
std::atomic<bool> g_forked_by_libc{false};

void AfterForkInChild() {
  g_forked_by_libc.store(true);
  AfterForkOfInputsInChild();
}

// What streams have been asked for is recorded before the process ends, unless they hang.
void DrainDevice() {
  constexpr uint32_t kMostMs = 2000;
  preload::TheDevice().Drain(kMostMs);
}

}  // namespace

RecorderEngine::RecorderEngine(const Config& config, LogFactory make_log)
    : Recorder(config, make_log, &WholeRecording::Make, *this),
      NcclRecorder(static_cast<Recorder&>(*this)),
      MpiRecorder(static_cast<Recorder&>(*this)),
      FileRecorder(static_cast<Recorder&>(*this)),
      InputRecorder(static_cast<Recorder&>(*this)),
      StepRecorder(static_cast<Recorder&>(*this)),
      MeetingRecorder(static_cast<Recorder&>(*this)),
      LockRecorder(static_cast<Recorder&>(*this)) {}

void RecorderEngine::WatchForks() {
  pthread_atfork(BeforeForkOfInputs, nullptr, AfterForkInChild);
}

void RecorderEngine::OnThreadEnd() {
  ErrnoKeeper keep;
  Recording* rec = Made();
  if (rec != nullptr && !rec->off()) rec->writer.EndThread();
}

// Null: this process has no recording, or is a vfork child that execs or exits in its parent's
// memory. That is not the parent's end.
Recording* RecorderEngine::BeforeEnd(Recording* rec) {
  if (rec == nullptr || rec->off() || !rec->IsThisProcess()) return nullptr;
  InputFiles::FinishAll(*rec);
  DrainDevice();
  NcclOf(*rec).choices.WriteLate();
  return rec;
}

void RecorderEngine::OnExec(const preload::NextProgram& next) {
  ErrnoKeeper keep;
  // A program that records itself says what it is. This event is all that names any other one.
  Recording* rec = BeforeEnd(next.records_itself() ? Made() : Active());
  if (rec == nullptr) return;
  const MaskedProgram masked(next, rec->config);
  format::ProcessExit exit;
  exit.how = static_cast<uint32_t>(preload::ExitHow::kExec);
  exit.program = masked.program();
  exit.arguments = masked.arguments();
  rec->writer.Write(exit);
  if (!next.records_itself()) rec->BecomeChild();
}

void RecorderEngine::OnExit(int code, preload::ExitHow how) {
  ErrnoKeeper keep;
  if (code == preload::kExitCodeUnknown) return;  // the last handler of exit knows it
  Recording* rec = BeforeEnd(Made());
  if (rec == nullptr || rec->exit_recorded.exchange(true)) return;
  format::ProcessExit exit;
  exit.code = code;
  exit.how = static_cast<uint32_t>(how);
  rec->writer.Write(exit);
  // As in OnCrash: the other ranks should keep what they have of this moment.
  if (code != 0 && rec->is_rank() && rec->writer.live())
    format::LeaveMarkIfNoneIsNew(rec->config.trace_dir,
                                 "a rank ended with an exit code other than 0");
}

void RecorderEngine::OnForkChild() {
  ErrnoKeeper keep;
  const bool can_record = g_forked_by_libc.exchange(false);
  Recording* parents = LeaveToParent(can_record);
  EventWriter::ForgetThread(preload::Self());
  preload::ResetStacksInChild();
  preload::ForgetDeviceInChild();
  // The parent's objects stay where they are: other threads may have been inside them at the fork.
  if (parents != nullptr && parents->log() != nullptr) parents->log()->AbandonInChild();
  preload::WantLockOrder(config().order_locks && can_record);
  BeginInChild(can_record);
}

void RecorderEngine::BeginSingle() {
  ErrnoKeeper keep;
  if (config().single_pid == 0 || config().single_pid != static_cast<int>(syscall(SYS_getpid)))
    return;
  if (Recording* rec = Active()) rec->BecomeRank(0, 1);
}

void RecorderEngine::OnNotRecorded(std::string_view what, bool may_be, std::string_view function) {
  ErrnoKeeper keep;
  Recording* rec = Active();
  if (rec == nullptr) return;
  format::Degraded degraded;
  degraded.reason = what.substr(0, kMaxReason);
  // A function that is not called is no news at the end.
  degraded.remark = !may_be ? 0 : function.empty() ? format::kSaidAtTheEnd : 1;
  degraded.function = function;
  rec->writer.Write(degraded);
}

void RecorderEngine::OnFilter(const char* call, bool& for_all) {
  const ErrnoKeeper keep;
  Recording* rec = Made();
  if (rec == nullptr || rec->off() || !rec->IsThisProcess()) return;
  const std::string what =
      std::string(
          "what the program does under its own seccomp filter, which refuses a system call "
          "that recording needs (") +
      call + ")";
  if (!rec->is_rank()) SayOnce("not recorded: " + what);
  format::Degraded degraded;
  degraded.reason = what;
  degraded.remark = format::kSaidAtTheEnd;
  rec->writer.Write(degraded);
  preload::WantLockOrder(false);
  DrainDevice();
  Finish();
  if (for_all && rec->log() != nullptr) rec->log()->EndThread();
}

void RecorderEngine::Finish() {
  Recording* rec = Made();
  if (rec != nullptr && rec->IsThisProcess() && !rec->off()) InputFiles::FinishAll(*rec);
  // `hostname`, `nproc`: all that they do is to look at the machine.
  if (rec != nullptr && rec->IsThisProcess() && rec->writer.has_identity()) rec->BecomeChild();
  if (rec != nullptr && rec->log() != nullptr && rec->IsThisProcess()) rec->log()->Finish();
}

}  // namespace deja::recorder
