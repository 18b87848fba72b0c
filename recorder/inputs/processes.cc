// Children: that they were made, and how they ended, as far as the program has seen it.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "api/libc_table.h"
#include "preload/engine/child_signal.h"
#include "preload/process/guard.h"
#include "preload/process/signal_look.h"
#include "recorder/core/child_signal_note.h"
#include "recorder/core/masked_program.h"
#include "recorder/inputs/input_recorder.h"

namespace deja::recorder {

int InputRecorder::OnChildMade(uint32_t number, int pid, const preload::NextProgram& program) {
  WriteChildSignal(recorder_);
  if (Recording* rec = recorder_.Active()) {
    const MaskedProgram masked(program, rec->config);
    format::Child child;
    child.number = number;
    child.pid = static_cast<uint32_t>(pid);
    child.program = masked.program();
    child.arguments = masked.arguments();
    rec->writer.Write(child);
  }
  return pid;
}

// What a wait that does not want to wait found, of one process. A program asks as often as it
// likes. So the first vain question is recorded, and the one that finds an end with the number of
// vain ones before it.
void InputRecorder::WriteLook(uint64_t key, int64_t result, int error) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::kwaitpid);
  input.key = key;
  input.result = result;
  input.error = static_cast<uint32_t>(error);
  rec->writer.Write(input);
  rec->RelieveStaging();
}

namespace {

// For any child only where a replay chooses when SIGCHLD comes: a shell asks when it does.
bool IsLook(const preload::WaitCall& call) {
  if ((call.options & WNOHANG) == 0) return false;
  return call.pid > 0 || (call.pid == -1 && preload::g_child_signal_handler.load() != nullptr);
}

uint64_t KeyOfLook(const preload::WaitCall& call) {
  return static_cast<uint64_t>(static_cast<int64_t>(call.pid));
}

}  // namespace

// A child that had ended cannot be told from one that ended by the signal, in its handler.
bool InputRecorder::MayKill(int pid, int signal) {
  if (pid <= 0 || !preload::EndsProcesses(signal)) return true;
  const ErrnoKeeper keep;
  siginfo_t info{};
  constexpr int kLook = WEXITED | WNOHANG | WNOWAIT;
  if (syscall(SYS_waitid, P_PID, pid, &info, kLook, nullptr) != 0) return true;
  WriteChildSignal(recorder_);
  WriteLook(preload::KeyOfSignal(pid), info.si_pid != 0 ? 1 : 0);
  return true;
}

bool InputRecorder::OnChildSignal(preload::ChildSignalCause cause) {
  return TakeOrDelayChildSignal(cause);
}

bool InputRecorder::BeforeCallAtPlace() {
  const preload::Guard guard;
  const ErrnoKeeper keep;
  WriteChildSignal(recorder_);
  return false;
}

void InputRecorder::AfterFileCall() {
  GiveChildSignalAtFileCall();
  BeforeCallAtPlace();
}

bool InputRecorder::EndsSleep() {
  const bool is_ended = GiveChildSignalAtSleep();
  BeforeCallAtPlace();
  return is_ended;
}

void InputRecorder::AfterVainWait(preload::WaitCall& call) {
  if (!IsLook(call)) return;
  WriteChildSignal(recorder_);
  if (vain_waits_.Count(call.pid) == 1) WriteLook(KeyOfLook(call), -1);
}

void InputRecorder::WriteEndedWait() {
  WriteLook(preload::kKeyOfEndedWait, -static_cast<int64_t>(preload::t_child_signal.child_waits),
            EINTR);
}

// One that has come for a computation ends the wait that follows it.
void InputRecorder::BeforeWait(preload::WaitCall& call) {
  WriteChildSignal(recorder_);
  if ((call.options & WNOHANG) != 0 || !TakeWaitingChildSignal()) return;
  call.is_ended = true;
  WriteEndedWait();
}

void InputRecorder::AfterEndedWait() {
  if (preload::TakeChildSignal()) WriteEndedWait();
}

void InputRecorder::AfterWait(preload::WaitCall& call) {
  WriteChildSignal(recorder_);
  if (IsLook(call)) WriteLook(KeyOfLook(call), static_cast<int64_t>(vain_waits_.Take(call.pid)));
  const bool by_signal = WIFSIGNALED(call.status);
  if ((!by_signal && !WIFEXITED(call.status)) || (call.options & WNOWAIT) != 0) return;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Child child;
  child.pid = static_cast<uint32_t>(call.result);
  child.ended = true;
  child.exit_code = by_signal ? -1 : WEXITSTATUS(call.status);
  child.signal = by_signal ? static_cast<uint32_t>(WTERMSIG(call.status)) : 0;
  rec->writer.Write(child);
}

}  // namespace deja::recorder
