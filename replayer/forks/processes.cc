// The part of ReplayerEngine for the processes of a rank: those it makes, and those that led to it.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <string>

#include "common/env_vars.h"
#include "common/os/folder_names.h"
#include "format/layout/child_folder.h"
#include "preload/meet/lock_order.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_name.h"
#include "preload/process/threads.h"
#include "replayer/core/claim.h"
#include "replayer/core/replay_variables.h"
#include "replayer/core/replayer_engine.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/forks/companions.h"
#include "replayer/report/ending.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {
namespace {

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

// Of a status of waitpid.
std::string EndText(int status) {
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void ReplayerEngine::OpenChild(const char* scratch) {
  const preload::ProcessName& name = preload::OwnProcessName();
  if (!preload::HasProcessName() || !name.IsChild()) return;
  SessionOptions options;
  options.folder = FindChildFolder(scratch, name.path);
  const bool is_forked = inherited_ != nullptr;
  if (options.folder.empty() && (!is_forked || follows_parent_)) {
    options.folder = FindCompanionFolder(scratch, name.path);
    options.is_companion = !options.folder.empty();
  }
  if (options.folder.empty()) return;
  if (options.is_companion) BecomeCompanion(IsOtherRank(scratch, name.path));
  options.scratch = scratch;
  const bool is_rank = forked_ == name.path;
  options.is_before_fork = LeadsToRank(name.path) && !is_rank;
  if (is_rank)
    SetGoals(options);
  else
    options.child = name.path;
  options.is_late = preload::OwnNumber(env::kFromCheckpoint) != 0 && !options.is_before_fork;
  if (const std::string bundle = Text(env::kReplayName); !bundle.empty())
    CallFolder(FolderAround(options.folder), bundle);
  if (const std::string rank = RankFolder(scratch); !rank.empty() && !options.is_companion)
    if (const auto origin = format::ReadOrigin(rank))
      options.rank_pid = static_cast<int>(origin->pid);
  SetModes(options);
  if (is_rank) BecomeThisProcess(scratch);
  if (IsChosenChild(name.path)) TakeShownOutputs(scratch);
  options.child_name = options.child;
  if (!forked_.empty() && options.child.starts_with(forked_ + "/"))
    options.child_name.erase(0, forked_.size() + 1);
  report_.SetChild(options.child_name);
  session_ = Session::Open(options);
  if (session_ == nullptr) Session::EndProcess(1);
  if (!options.is_before_fork) {
    report_.Write(StartLine{.pid = OwnPid()});
  }
  if (InputServer::HasBytes(*session_)) input_files_.FillInherited(*session_);
  Begin();
}

std::string ReplayerEngine::RankFolder(const char* scratch) const {
  return forked_.empty() ? Text(env::kReplay) : FindChildFolder(scratch, forked_);
}

void ReplayerEngine::BecomeThisProcess(const std::string& scratch) {
  live_pid_ = OwnPid();
  root_pid_ = OwnPid();
  HoldClaim(scratch);
}

void ReplayerEngine::OnForkChild() {
  // The child is another process than the recorded one; what it writes still goes to the overlay.
  Session* parents = session_;
  session_ = nullptr;
  if (connections_ != nullptr) connections_->Abandon();
  connections_ = nullptr;
  groups_ = nullptr;
  locks_ = nullptr;
  preload::WantLockOrder(false);
  live_told_.store(false);
  ServedFile::SetSession(nullptr);
  live_pid_ = OwnPid();
  preload::Self().engine_state = nullptr;
  preload::Self().group_depth = 0;
  ForwardStacks(nullptr);
  if (parents == nullptr) return;  // its child neither
  if (LiveTrace* live = parents->live_trace()) live->AbandonInChild();
  inherited_ = &parents->plan();
  follows_parent_ = parents->options().is_before_fork || parents->options().is_companion;
  companions_.clear();
  if (!preload::HasProcessName()) return;  // made behind our back: it may do next to nothing
  // Threads that are not here may have held their locks.
  new (&overlay_) Overlay();
  new (&input_files_) InputServer();
  new (&folders_) ServedFolders();
  overlay_.Open(parents->options().scratch);
  ForgetEnding();
  ForgetPosition();
  OpenChild(parents->options().scratch.c_str());
}

// True of a forked rank, and of a process that forks it, or who does.
bool ReplayerEngine::LeadsToRank(std::string_view name) const {
  return !name.empty() && std::string_view(forked_).starts_with(name) &&
         (forked_.size() == name.size() || forked_[name.size()] == '/');
}

// Of a forked rank's parent: other ranks are not made.
int ReplayerEngine::SkippedChild(uint32_t number) {
  char name[preload::kMaxProcessPath];
  if (forked_.empty() || session_ == nullptr ||
      !IsOtherRank(overlay_.scratch(), preload::WriteChildPath(number, name)))
    return 0;
  if (MayMakeCompanions() && !FindCompanionFolder(overlay_.scratch(), name).empty()) return 0;
  const int recorded = RecordedChildPid(number);
  constexpr int kNobody = 1 << 22;  // more than any pid
  return recorded != 0 ? recorded : kNobody;
}

int ReplayerEngine::OnChildMade(uint32_t number, int pid) {
  char name[preload::kMaxProcessPath];
  if (LeadsToRank(preload::WriteChildPath(number, name))) {
    EndCompanions();
    EndWithChild();
    EndAs(pid);
  }
  const bool makes_others = session_ != nullptr && session_->options().is_before_fork;
  if (makes_others && IsOtherRank(overlay_.scratch(), name)) companions_.push_back(pid);
  const int recorded = RecordedChildPid(number);
  if (recorded == 0) return pid;
  pids_.Add(recorded, pid);
  return recorded;
}

void ReplayerEngine::BecomeCompanion(bool is_rank) {
  report_.Close();
  if (!is_rank) return;
  MuteOutput();
  const auto parent = static_cast<pid_t>(syscall(SYS_getppid));
  EndWithParent(parent);
  AwaitStandingParent(parent);
}

void ReplayerEngine::EndCompanions() {
  for (const pid_t pid : companions_) {
    syscall(SYS_kill, pid, SIGKILL);
    syscall(SYS_wait4, pid, nullptr, 0, nullptr);
  }
  companions_.clear();
}

int ReplayerEngine::RecordedChildPid(uint32_t number) {
  if (session_ == nullptr) return 0;
  const ThreadState& thread = session_->Thread();
  if (thread.recorded == kNone) return 0;
  const auto& made = session_->plan().threads()[thread.recorded].made;
  const auto it = made.find(number);
  return it == made.end() ? 0 : static_cast<int>(it->second);
}

// Which of several ended first is as it was recorded.
void ReplayerEngine::BeforeWait(preload::WaitCall& call) {
  if (session_ == nullptr) return;
  session_->CountActivity();
  if (call.pid != -1 && call.pid != 0) {
    call.pid = MapPid(call.pid);
    return;
  }
  ThreadState& thread = session_->Thread();
  if (thread.recorded == kNone) return;
  const auto& ends = session_->plan().threads()[thread.recorded].ends;
  while (thread.next_end < ends.size() && pids_.IsGone(static_cast<int>(ends[thread.next_end])))
    ++thread.next_end;
  if (thread.next_end == ends.size()) return;
  const int live = pids_.Live(static_cast<int>(ends[thread.next_end]));
  if (live != 0) call.pid = live;
}

void ReplayerEngine::AfterWait(preload::WaitCall& call) {
  const int live = call.result;
  const int recorded = pids_.Recorded(live);
  if (recorded == 0) return;
  call.result = recorded;
  if (!WIFEXITED(call.status) && !WIFSIGNALED(call.status)) return;
  if ((call.options & WNOWAIT) == 0) pids_.SetGone(live);
  if (session_ == nullptr) return;
  session_->CountActivity();
  const auto status = session_->plan().StatusOf(static_cast<uint32_t>(recorded));
  if (!status) return;
  // A signal may have come from anywhere; other ends are the child's own.
  const bool from_outside =
      WIFSIGNALED(*status) && (WTERMSIG(*status) == SIGKILL || WTERMSIG(*status) == SIGTERM);
  const bool same = (*status & 0xff7f) == (call.status & 0xff7f);
  if (!same && !from_outside) {
    report_.Write(
        ChildEndLine{.pid = recorded, .live = EndText(call.status), .recorded = EndText(*status)});
  }
  call.status = *status;
}

}  // namespace deja::replayer
