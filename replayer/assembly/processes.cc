// The engine in the processes of a rank: those that it makes, and those that led to it.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>

#include "common/env_vars.h"
#include "common/os/folder_names.h"
#include "common/runtime/clock_ns.h"
#include "format/layout/child_folder.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_name.h"
#include "preload/process/threads.h"
#include "replayer/assembly/open_session.h"
#include "replayer/assembly/replayer_engine.h"
#include "replayer/core/ending.h"
#include "replayer/core/replay_variables.h"
#include "replayer/forks/awaited_ends.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/forks/companions.h"
#include "replayer/meet/meeting_list.h"
#include "replayer/meet/other_threads.h"
#include "replayer/meet/stillness.h"
#include "replayer/process/busy_threads.h"
#include "replayer/process/claim.h"
#include "replayer/process/end_process.h"
#include "replayer/process/without_interpreter.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {

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
  all_is_made_ = options.folder.empty();
  SayAllMade(scratch, all_is_made_);
  if (options.folder.empty()) return;
  SayExits(scratch, false);
  SayRunsLive(scratch, false);
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
  SetSignalledChild(this);
  if (!allow_writes) LearnCreatedFiles();
  FillInherited();
  Begin();
}

namespace {

constexpr uint64_t kSignalPatienceNs = 2'000 * Stillness::kMs;

// What threads do after their last recorded event is not counted, such as a piece of output, or to
// give a lock back. They get until all of them wait, or some processor time: they may have been
// stopped at work.
constexpr uint64_t kMostUsedNs = 50 * Stillness::kMs;
constexpr uint64_t kMostIdleNs = 10'000 * Stillness::kMs;  // of a machine under load
constexpr timespec kIdlePause{0, 2'000'000};

// The threads of another process.
void AwaitIdle(int pid) {
  const uint64_t begun = MonotonicNs();
  const uint64_t used_before = TimeUsedBy(pid);
  uint64_t last = used_before;
  while (last - used_before < kMostUsedNs && MonotonicNs() - begun < kMostIdleNs) {
    syscall(SYS_nanosleep, &kIdlePause, nullptr);
    const uint64_t used = TimeUsedBy(pid);
    if (used == last && !IsAThreadBusy(pid)) return;
    last = used;
  }
}

// The other threads of this one.
void AwaitOthersIdle() {
  constexpr int kLooks = 3;  // one may just be about to be woken
  const auto used_ns = [] {
    return ClockNs(CLOCK_PROCESS_CPUTIME_ID) - ClockNs(CLOCK_THREAD_CPUTIME_ID);
  };
  const uint64_t begun = MonotonicNs();
  const uint64_t used_before = used_ns();
  for (int idle = 0; idle < kLooks; idle = IsAnotherThreadBusy() ? 0 : idle + 1) {
    if (used_ns() >= used_before + kMostUsedNs || MonotonicNs() - begun >= kMostIdleNs) return;
    syscall(SYS_nanosleep, &kIdlePause, nullptr);
  }
}

}  // namespace

void ReplayerEngine::AwaitOtherThreads() {
  if (session == nullptr || session->options().child.empty() || session->options().is_late) return;
  static std::atomic<bool> is_over{false};
  if (is_over.exchange(true)) return;
  const uint32_t own = session->Thread().recorded;
  const auto are_left = [&] {
    return session->progress().MeetingsLeftBut(own) != 0 || !AreAnswersGiven(own);
  };
  const auto& threads = session->plan().threads();
  bool others_meet = false;
  for (uint32_t i = 0; i < threads.size(); ++i) others_meet |= i != own && threads[i].meetings != 0;
  if (!others_meet && !are_left()) return;
  WithoutInterpreter apart(true);
  if (are_left()) ServeOthers(are_left);
  AwaitOthersIdle();
  apart.End();
}

// The others may wait for something else meanwhile, such as the end of another child.
void ReplayerEngine::ServeOthers(const std::function<bool()>& are_left) const {
  const auto is_rank_there = [&] { return syscall(SYS_kill, ClaimHolder(scratch), 0) == 0; };
  Pauses pauses;
  for (Stillness still(*session); are_left() && still.ns() < Stillness::kTellNs && is_rank_there();
       still.IsTimeToLook())
    pauses.Next();
}

bool ReplayerEngine::IsEverybodyServed() {
  return session->progress().MeetingsLeftBut(kNone) == 0 &&
         session->progress().transfers_left() == 0 && IsFamilyServed();
}

void ReplayerEngine::OnAllMade() {
  if (all_is_made_ || !IsEverybodyServed()) return;
  all_is_made_ = true;
  SayAllMade(scratch, true);
}

void ReplayerEngine::AwaitAllMade(int pid) const {
  const auto is_done = [&] { return HasMadeAll(scratch, pid) || syscall(SYS_kill, pid, 0) != 0; };
  const bool is_patient = IsInDebugger() && IsChildChosen();  // the user is in that child
  // A program that loads no library says nothing.
  const auto is_known = [&] { return HasAnnouncedMeetings(scratch, pid); };
  WithoutInterpreter apart(true);
  const uint64_t begun = MonotonicNs();
  Pauses pauses;
  for (Stillness still(*session); !is_done(); still.IsTimeToLook()) {
    const uint64_t most = is_known() ? Stillness::kGiveUpNs : kSignalPatienceNs;
    const bool gives_up =
        still.ns_of_the_watch() >= kSignalPatienceNs || MonotonicNs() - begun >= most;
    if (gives_up && !is_patient) break;
    pauses.Next();
  }
  if (HasMadeAll(scratch, pid)) AwaitIdle(pid);
  apart.End();
}

// The process ends; it may still have something to do before, for long on a machine under load. A
// program that goes on after a divergence may have told it nothing, so that it never ends.
void ReplayerEngine::AwaitRecordedEnd(int pid, const std::function<bool()>& or_else) const {
  constexpr timespec kPause{0, 2'000'000};
  constexpr uint64_t kDivergedNs = 2'000 * Stillness::kMs;
  constexpr uint64_t kMostNs = 600'000 * Stillness::kMs;  // however much others move
  const bool is_strict = session->options().stop_on_divergence;
  const uint64_t patience = is_strict ? Stillness::kGiveUpNs : kDivergedNs;
  const auto is_over = [&] { return HasChildEnded(pid) || (or_else && or_else()); };
  if (is_over()) return;
  const bool is_patient = IsInDebugger();
  const AwaitedEnd awaited(scratch, pid);
  WithoutInterpreter apart(true);
  const uint64_t begun = MonotonicNs();
  const auto gives_up = [&](const Stillness& still) {
    return still.ns_of_the_watch() >= patience || MonotonicNs() - begun >= kMostNs;
  };
  for (Stillness still(*session); !is_over() && (is_patient || !gives_up(still));
       still.IsTimeToLook())
    nanosleep(&kPause, nullptr);
  apart.End();
}

void ReplayerEngine::AwaitOthersAt(const ThreadState& thread, const MeetingsByThread& met) {
  AwaitMeetings(*session, thread, met);
}

// The process that sends it may compute for long before, above all on a machine under load.
void ReplayerEngine::AwaitSignal() {
  constexpr uint64_t kMostNs = Stillness::kGiveUpNs;
  if (!session->options().is_late) ServeOthers([&] { return !IsEverybodyServed(); });
  SayAllMade(scratch, true);
  const uint64_t begun = MonotonicNs();
  Pauses pauses;
  for (Stillness still(*session);
       !IsEndAwaited(scratch, OwnPid()) && still.ns_of_the_watch() < kSignalPatienceNs &&
       MonotonicNs() - begun < kMostNs;
       still.IsTimeToLook())
    pauses.Next();
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
  all_is_made_ = false;
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
