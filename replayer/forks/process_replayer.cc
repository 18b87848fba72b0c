#include "replayer/forks/process_replayer.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>

#include "api/libc_table.h"
#include "preload/engine/child_signal.h"
#include "preload/engine/child_signal_timer.h"
#include "preload/process/process_again.h"
#include "preload/process/process_lineage.h"
#include "preload/process/process_name.h"
#include "preload/process/signal_look.h"
#include "preload/process/threads.h"
#include "replayer/core/ending.h"
#include "replayer/forks/awaited_ends.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/forks/companions.h"
#include "replayer/process/claim.h"
#include "replayer/process/process_status.h"
#include "replayer/process/without_interpreter.h"

namespace deja::replayer {
namespace {

// The recording says where SIGCHLD comes. For a signal's handler.
std::atomic<bool> g_chooses_signals{false};

// No event has these.
constexpr auto kVainLooks = static_cast<uint32_t>(api::LibcApi::kwaitid);
constexpr auto kHeardEnds = static_cast<uint32_t>(api::LibcApi::kwait3);

// The process ends as its child does.
[[noreturn]] void EndAs(pid_t child) {
  int status = 0;
  while (syscall(SYS_wait4, child, &status, 0, nullptr) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    syscall(SYS_rt_sigaction, WTERMSIG(status), &by_default, nullptr, sizeof(uint64_t));
    syscall(SYS_kill, OwnPid(), WTERMSIG(status));
  }
  for (;;)
    syscall(SYS_exit_group, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// Describes a status of waitpid.
std::string EndText(int status) {
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void ProcessReplayer::Begin() {
  const ReplayPlan& plan = replayer_.session->plan();
  const auto parent = static_cast<int>(plan.parent_pid);
  const bool are_recorded = replayer_.session->progress().child_signals().AreRecorded();
  g_chooses_signals.store(are_recorded);
  preload::g_counts_file_calls.store(are_recorded);
  preload::SetRecordedPids(static_cast<int>(plan.pid), parent);
  pids_.Add(parent, static_cast<int>(syscall(SYS_getppid)));
}

int ProcessReplayer::MapPid(int pid) {
  const int number = pid < 0 ? -pid : pid;
  if (pid == 0 || pid == -1) return pid;
  int live = 0;
  if (preload::HasProcessName() && preload::OwnProcessName().recorded_pid == number)
    live = replayer_.live_pid;
  else
    live = pids_.Live(number);
  if (live == 0) return pid;
  return pid < 0 ? -live : live;
}

// The calling thread sends the process a signal that ends processes, and the recording says that it
// had ended by then.
bool ProcessReplayer::HadEndedAtSignal(int recorded) {
  ThreadState& thread = replayer_.session->Thread();
  if (thread.recorded == kNone || replayer_.session->options().is_late) return false;
  const InputKey key{static_cast<uint32_t>(api::LibcApi::kwaitpid), preload::KeyOfSignal(recorded)};
  const auto& by_key = replayer_.session->plan().threads()[thread.recorded].by_key;
  const auto looks = by_key.find(key);
  if (looks == by_key.end()) return false;
  uint32_t& next = thread.next_by_key[key];
  if (next >= looks->second.size()) return false;
  const bool had_ended = replayer_.session->plan().inputs()[looks->second[next++]].result == 1;
  replayer_.session->progress().ConsumeMeeting(thread.recorded);
  return had_ended;
}

// A child that ended by itself in the recorded run does so before it is killed. So its last calls,
// and how it ends, do not depend on a race. One that the signal ended reaches its last call before.
// Where it may have ended in its handler of the signal, it gets some time to reach that place.
void ProcessReplayer::AwaitEnd(int pid, int signal) {
  const int recorded = replayer_.session == nullptr || pid <= 0 ? 0 : pids_.Recorded(pid);
  if (recorded == 0) return;
  const bool had_ended = HadEndedAtSignal(recorded);
  if (pids_.IsGone(recorded)) return;
  if (had_ended) return AwaitRecordedEnd(pid, nullptr);
  const auto status = replayer_.session->plan().StatusOf(static_cast<uint32_t>(recorded));
  if (!status) return;
  if (WIFSIGNALED(*status) && WTERMSIG(*status) == signal) AwaitAllMade(pid);
  if (WIFEXITED(*status)) AwaitExit(pid, signal);
}

// The child exited. So it had a handler of the signal, or was about to exit when that came. A
// replay waits for either. A handler may have ended the child.
void ProcessReplayer::AwaitExit(int pid, int signal) {
  constexpr int kLasting = 20;  // libraries block signals for a moment
  const auto is_handled = [&, pending = 0]() mutable {
    const SignalEffect effect = EffectOf(signal, pid);
    pending = effect == SignalEffect::kPends ? pending + 1 : 0;
    return effect == SignalEffect::kHandled || pending > kLasting;
  };
  AwaitRecordedEnd(pid, is_handled);
  // Others are sent to tell a process something, too, and often.
  if (signal != SIGTERM && signal != SIGINT) return;
  constexpr timespec kPause{0, 2'000'000};
  constexpr int kMostPauses = 1000;
  const bool is_patient = IsInDebugger();
  for (int i = 0; (i < kMostPauses || is_patient) && !HasChildEnded(pid); ++i) {
    if (HasMadeAll(replayer_.scratch, pid)) return AwaitAllMade(pid);
    nanosleep(&kPause, nullptr);
  }
}

// The recording says where the program finds it.
bool ProcessReplayer::OnChildSignal(preload::ChildSignalCause cause) {
  if (!g_chooses_signals.load()) return true;
  if (cause != preload::ChildSignalCause::kSentAgain || !preload::t_child_signal.waits)
    return false;
  preload::StopChildSignalTimer();
  preload::t_child_signal.waits = false;
  return true;
}

bool ProcessReplayer::BeforeCallAtPlace() {
  return ChildSignals::GiveWaiting();
}

void ProcessReplayer::AfterFileCall() {
  if (replayer_.session == nullptr) return;
  const preload::Guard guard;
  Session& session = *replayer_.session;
  session.progress().child_signals().CountFileCall(session.Thread().recorded);
}

bool ProcessReplayer::EndsSleep() {
  if (replayer_.session == nullptr) return false;
  const preload::Guard guard;
  Session& session = *replayer_.session;
  return session.progress().child_signals().CountSleep(session.Thread().recorded);
}

bool ProcessReplayer::MayKill(int pid, int signal) {
  if (signal == 0) return true;  // asks whether it is there
  const int own = OwnPid();
  if (pid == own || pid == replayer_.live_pid) {
    // Nothing can be reported after a signal that cannot be caught.
    if (signal == SIGKILL && replayer_.session != nullptr) {
      AwaitOtherThreads();
      replayer_.report.Write(CountedLine{replayer_.session->divergences().CountersNow()});
    }
    return true;
  }
  // The processes of the rank are its own: the others are not asked. A group of processes is that
  // of its leader.
  const int process = pid < 0 ? -pid : pid;
  const bool own_group = pid == 0 || (pid < -1 && getpgid(replayer_.root_pid) == process);
  if (pid > 0 && syscall(SYS_kill, pid, 0) != 0 && errno == ESRCH) return true;
  if (process > 1 && !own_group && preload::DescendsFrom(process, replayer_.root_pid)) {
    if (preload::EndsProcesses(signal)) AwaitEnd(pid, signal);
    return true;
  }
  char target[64];
  if (pid > 0)
    snprintf(target, sizeof target, "process %d", pid);
  else
    snprintf(target, sizeof target, "process group %d", -pid);
  replayer_.Refuse("a signal to", target, nullptr);
  errno = EPERM;
  return false;
}

// True of a forked rank, and of a process that forks it, or an ancestor of that.
bool ProcessReplayer::LeadsToRank(std::string_view name) const {
  return !name.empty() && std::string_view(replayer_.forked).starts_with(name) &&
         (replayer_.forked.size() == name.size() || replayer_.forked[name.size()] == '/');
}

// In a forked rank's parent: other ranks are not made.
int ProcessReplayer::SkippedChild(uint32_t number) {
  char name[preload::kMaxProcessPath];
  if (replayer_.forked.empty() || replayer_.session == nullptr ||
      !IsOtherRank(replayer_.scratch, preload::WriteChildPath(number, name)))
    return 0;
  if (MayMakeCompanions() && !FindCompanionFolder(replayer_.scratch, name).empty()) return 0;
  const int recorded = RecordedChildPid(number);
  constexpr int kNobody = 1 << 22;  // more than any pid
  return recorded != 0 ? recorded : kNobody;
}

int ProcessReplayer::OnChildMade(uint32_t number, int pid, const preload::NextProgram& program) {
  char name[preload::kMaxProcessPath];
  if (LeadsToRank(preload::WriteChildPath(number, name))) {
    EndCompanions();
    EndWithChild();
    EndAs(pid);
  }
  const bool makes_others =
      replayer_.session != nullptr && replayer_.session->options().is_before_fork;
  if (makes_others && IsOtherRank(replayer_.scratch, name)) companions_.push_back(pid);
  const int recorded = RecordedChildPid(number);
  if (recorded == 0) return pid;
  preload::NextProgram next = program;
  next.FindWhetherRecorded();
  pids_.Add(recorded, pid, !next.records_itself());
  return recorded;
}

void ProcessReplayer::EndCompanions() {
  for (const pid_t pid : companions_) {
    syscall(SYS_kill, pid, SIGKILL);
    syscall(SYS_wait4, pid, nullptr, 0, nullptr);
  }
  companions_.clear();
}

int ProcessReplayer::RecordedChildPid(uint32_t number) {
  if (replayer_.session == nullptr) return 0;
  const ThreadState& thread = replayer_.session->Thread();
  if (thread.recorded == kNone) return 0;
  const auto& made = replayer_.session->plan().threads()[thread.recorded].made;
  const auto it = made.find(number);
  return it == made.end() ? 0 : static_cast<int>(it->second);
}

// A question where there is no child fails; it is not recorded.
bool ProcessReplayer::IsOrHasChild(int pid) {
  siginfo_t info{};
  const idtype_t type = pid == -1 ? P_ALL : P_PID;
  return waitid(type, static_cast<id_t>(MapPid(pid)), &info, WEXITED | WNOHANG | WNOWAIT) == 0 ||
         errno != ECHILD;
}

// A program that asks whether a process has ended finds it so when it did, after as many vain
// questions. True: now.
bool ProcessReplayer::ServeLook(ThreadState& thread, preload::WaitCall& call) {
  if (thread.recorded == kNone || (call.options & WNOHANG) == 0) return false;
  // From a checkpoint on, other children may be there.
  if (replayer_.session->options().is_late) return false;
  const InputKey key{static_cast<uint32_t>(api::LibcApi::kwaitpid),
                     static_cast<uint64_t>(static_cast<int64_t>(call.pid))};
  const auto& by_key = replayer_.session->plan().threads()[thread.recorded].by_key;
  const auto recorded = by_key.find(key);
  if (recorded == by_key.end()) return false;
  const auto result = [&](uint32_t at) {
    return replayer_.session->plan().inputs()[recorded->second[at]].result;
  };
  uint32_t& next = thread.next_by_key[key];
  if (next >= recorded->second.size() || !IsOrHasChild(call.pid)) return false;
  if (result(next) < 0) {
    const bool is_found = next + 1 < recorded->second.size();
    uint32_t& vain = thread.next_by_key[{kVainLooks, key.second}];
    if (!is_found || static_cast<int64_t>(vain) < result(next + 1)) {
      call.finds_nothing = true;
      if (vain++ == 0) replayer_.session->progress().ConsumeMeeting(thread.recorded);
      return false;
    }
    vain = 0;
    ++next;
  }
  ++next;
  replayer_.session->progress().ConsumeMeeting(thread.recorded);
  return true;
}

// SIGCHLD ends the wait that it ended.
bool ProcessReplayer::IsWaitEnded(ThreadState& thread) {
  if (thread.recorded == kNone || replayer_.session->options().is_late) return false;
  const InputKey key{static_cast<uint32_t>(api::LibcApi::kwaitpid), preload::kKeyOfEndedWait};
  const auto& by_key = replayer_.session->plan().threads()[thread.recorded].by_key;
  const auto ended = by_key.find(key);
  if (ended == by_key.end()) return false;
  uint32_t& next = thread.next_by_key[key];
  if (next >= ended->second.size()) return false;
  const int64_t place = replayer_.session->plan().inputs()[ended->second[next]].result;
  if (place != -static_cast<int64_t>(preload::t_child_signal.child_waits)) return false;
  ++next;
  replayer_.session->progress().ConsumeMeeting(thread.recorded);
  return true;
}

// Which of several ended first is as it was recorded.
void ProcessReplayer::BeforeWait(preload::WaitCall& call) {
  if (replayer_.session == nullptr) return;
  replayer_.session->progress().CountActivity();
  ThreadState& thread = replayer_.session->Thread();
  call.is_ended = (call.options & WNOHANG) == 0 && IsWaitEnded(thread);
  if (call.is_ended) return;
  const bool is_found = ServeLook(thread, call);
  if (call.finds_nothing) return;
  if (call.pid != -1 && call.pid != 0) {
    call.pid = MapPid(call.pid);
    return AwaitEndToHear(call, is_found);
  }
  if (thread.recorded == kNone) return;
  const auto& ends = replayer_.session->plan().threads()[thread.recorded].ends;
  while (thread.next_end < ends.size() && pids_.IsGone(static_cast<int>(ends[thread.next_end])))
    ++thread.next_end;
  if (thread.next_end == ends.size()) return;
  const int live = pids_.Live(static_cast<int>(ends[thread.next_end]));
  if (live == 0) return;
  call.pid = live;
  AwaitEndToHear(call, is_found);
}

// Until the thread hears of it, the process is there: others may send it a signal.
void ProcessReplayer::AwaitEndToHear(preload::WaitCall& call, bool is_found) {
  if (is_found) return AwaitRecordedEnd(call.pid, nullptr);
  constexpr int kOtherWays = WNOHANG | WNOWAIT | WUNTRACED | WCONTINUED;
  const int recorded = call.pid > 0 ? pids_.Recorded(call.pid) : 0;
  if (recorded == 0 || (call.options & kOtherWays) != 0 || !HearsLater()) return;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(call.pid), &info, WEXITED | WNOWAIT) != 0) return;
  AwaitPlaceOfEnd(recorded);
  call.is_at_place = true;
}

// In which order threads hear of ends is a matter of time. In asyncio, before Python 3.12, a thread
// beside the first waits for each command.
bool ProcessReplayer::HearsLater() {
  Session& session = *replayer_.session;
  const uint32_t recorded = session.Thread().recorded;
  return recorded != kNone && !session.options().is_late &&
         session.plan().threads()[recorded].name != "0";
}

void ProcessReplayer::AwaitPlaceOfEnd(int pid) {
  if (!HearsLater()) return;
  ThreadState& thread = replayer_.session->Thread();
  const ReplayPlan& plan = replayer_.session->plan();
  const auto number = static_cast<uint32_t>(pid);
  const uint32_t heard = thread.next_by_key[{kHeardEnds, number}]++;
  AwaitOthersAt(thread, plan.met_by_then().AtEnd(thread.recorded, number, heard));
}

void ProcessReplayer::AfterWait(preload::WaitCall& call) {
  const int live = call.result;
  const int recorded = pids_.Recorded(live);
  if (recorded == 0) return;
  call.result = recorded;
  if (!WIFEXITED(call.status) && !WIFSIGNALED(call.status)) return;
  if ((call.options & WNOWAIT) == 0) pids_.SetGone(live);
  if (replayer_.session == nullptr) return;
  replayer_.session->progress().CountActivity();
  if ((call.options & (WNOWAIT | WNOHANG)) == 0 && !call.is_at_place) AwaitPlaceOfEnd(recorded);
  const auto status = replayer_.session->plan().StatusOf(static_cast<uint32_t>(recorded));
  if (!status) return;
  // A signal may have come from anywhere; other ends are the child's own.
  const bool from_outside =
      WIFSIGNALED(*status) && (WTERMSIG(*status) == SIGKILL || WTERMSIG(*status) == SIGTERM);
  const bool same = (*status & 0xff7f) == (call.status & 0xff7f);
  const bool has_exited = WIFSIGNALED(*status) && HasExited(replayer_.scratch, live);
  if (!same && !from_outside && !has_exited) {
    replayer_.report.Write(
        ChildEndLine{.pid = recorded,
                     .live = EndText(call.status),
                     .recorded = EndText(*status),
                     .is_live = pids_.IsLive(recorded) || RunsLive(replayer_.scratch, live)});
  }
  call.status = *status;
}

}  // namespace deja::replayer
