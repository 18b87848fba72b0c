// The engine in the processes of a rank: those that it makes, and those that led to it.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>

#include "common/env_vars.h"
#include "common/os/folder_names.h"
#include "format/layout/child_folder.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_name.h"
#include "preload/process/threads.h"
#include "replayer/assembly/open_session.h"
#include "replayer/assembly/replayer_engine.h"
#include "replayer/core/ending.h"
#include "replayer/core/replay_variables.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/forks/companions.h"
#include "replayer/meet/stillness.h"
#include "replayer/process/claim.h"
#include "replayer/process/end_process.h"
#include "replayer/process/without_interpreter.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {

namespace {

constexpr timespec kPause{0, 2'000'000};

// The process that sends the signal may need the child before: it has time while the rank moves.
void AwaitSignal(const Session& session) {
  constexpr uint64_t kPatienceNs = 2'000 * Stillness::kMs;
  constexpr uint64_t kMostNs = 10'000 * Stillness::kMs;
  const uint64_t begun = MonotonicNs();
  Stillness still(session);
  while (still.ns_of_the_watch() < kPatienceNs && MonotonicNs() - begun < kMostNs) {
    syscall(SYS_nanosleep, &kPause, nullptr);
    still.IsTimeToLook();
  }
}

}  // namespace

void ReplayerEngine::OpenChild() {
  const preload::ProcessName& name = preload::OwnProcessName();
  if (!preload::HasProcessName() || !name.IsChild()) return;
  SessionOptions options;
  options.folder = FindChildFolder(scratch.c_str(), name.path);
  const bool is_forked = inherited != nullptr;
  if (options.folder.empty() && (!is_forked || follows_parent_)) {
    options.folder = FindCompanionFolder(scratch, name.path);
    options.is_companion = !options.folder.empty();
  }
  if (options.folder.empty()) return;
  if (options.is_companion) BecomeCompanion(IsOtherRank(scratch, name.path));
  options.scratch = scratch;
  const bool is_rank = forked == name.path;
  options.is_before_fork = LeadsToRank(name.path) && !is_rank;
  if (is_rank)
    SetGoals(options);
  else
    options.child = name.path;
  options.is_late = preload::OwnNumber(env::kFromCheckpoint) != 0 && !options.is_before_fork;
  if (const std::string bundle = Text(env::kReplayName); !bundle.empty())
    CallFolder(FolderAround(options.folder), bundle);
  if (const std::string rank = RankFolder(); !rank.empty() && !options.is_companion)
    if (const auto origin = format::ReadOrigin(rank))
      options.rank_pid = static_cast<int>(origin->pid);
  SetModes(options);
  if (is_rank) BecomeThisProcess();
  if (IsChosenChild(name.path)) TakeShownOutputs(scratch);
  options.child_name = options.child;
  if (!forked.empty() && options.child.starts_with(forked + "/"))
    options.child_name.erase(0, forked.size() + 1);
  report.SetChild(options.child_name);
  session = OpenSession(options);
  if (session == nullptr) EndProcess(1);
  if (!options.is_before_fork) {
    report.Write(StartLine{.pid = OwnPid()});
  }
  SetSignalWait(AwaitSignal);
  if (!allow_writes) LearnCreatedFiles();
  FillInherited();
  Begin();
}

void ReplayerEngine::AwaitOtherThreads() {
  if (session == nullptr || session->options().child.empty() || session->options().is_late) return;
  static std::atomic<bool> is_over{false};
  if (is_over.exchange(true)) return;
  const uint32_t own = session->Thread().recorded;
  const auto are_left = [&] {
    return session->progress().MeetingsLeftBut(own) != 0 || !AreAnswersGiven(own);
  };
  if (!are_left()) return;
  constexpr int kMostPauses = 5'000;  // other processes of the rank may go on for long
  WithoutInterpreter apart(true);
  Stillness still(*session);
  for (int i = 0; i < kMostPauses && are_left() && still.ns() < Stillness::kLeftNs; ++i) {
    nanosleep(&kPause, nullptr);
    still.IsTimeToLook();
  }
  apart.End();
}

std::string ReplayerEngine::RankFolder() const {
  return forked.empty() ? Text(env::kReplay) : FindChildFolder(scratch, forked);
}

void ReplayerEngine::BecomeThisProcess() {
  live_pid = OwnPid();
  root_pid = OwnPid();
  HoldClaim(scratch);
}

void ReplayerEngine::OnForkChild() {
  // The child is another process than the recorded one; what it writes still goes to the overlay.
  Session* parents = session;
  session = nullptr;
  SocketReplayer::Abandon();
  NcclReplayer::Abandon();
  LockReplayer::Abandon();
  FileReplayer::Abandon();
  images_ = nullptr;
  ForgetReports();
  live_pid = OwnPid();
  preload::Self().engine_state = nullptr;
  preload::Self().group_depth = 0;
  ForwardStacks(nullptr);
  if (parents == nullptr) return;  // its child neither
  if (LiveTrace* live = parents->live_trace()) live->AbandonInChild();
  inherited = &parents->plan();
  follows_parent_ = parents->options().is_before_fork || parents->options().is_companion;
  ProcessReplayer::Abandon();
  if (!preload::HasProcessName()) return;  // made behind our back: it may do next to nothing
  OpenInChild();
  ForgetEnding();
  ForgetPosition();
  OpenChild();
}

void ReplayerEngine::BecomeCompanion(bool is_rank) {
  report.Close();
  if (!is_rank) return;
  MuteOutput();
  const auto parent = static_cast<pid_t>(syscall(SYS_getppid));
  EndWithParent(parent);
  AwaitStandingParent(parent);
}

}  // namespace deja::replayer
