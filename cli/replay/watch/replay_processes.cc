#include "cli/replay/watch/replay_processes.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <set>
#include <utility>

#include "cli/child_processes.h"
#include "cli/devices/device_swap.h"
#include "cli/interruption.h"
#include "cli/output.h"
#include "cli/replay/fold/turn_scheduler.h"
#include "cli/replay/report/replay_report.h"
#include "common/env_vars.h"
#include "common/process/proc_stat.h"

namespace deja::cli {
namespace {

// The child that the replay is about has been there, and is gone.
bool HasChildEnded(const Replayed& replay) {
  if (replay.child.empty()) return false;
  for (const ReportLine& line : ReadReport(replay.target.scratch).lines)
    if (const auto* start = line.As<StartLine>(); start != nullptr && line.child == replay.child)
      return !ReadProcStat(start->pid).Runs();
  return false;
}

// This process is a subreaper: it gets the processes that the programs have left. They have a
// moment to end by themselves.
void EndLeftovers() {
  constexpr int kSteps = 100;
  constexpr useconds_t kStepUs = 20000;
  for (int step = 0; step < 2 * kSteps; ++step) {
    pid_t pid = 0;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0) return;
    if (step >= kSteps) {
      for (const pid_t left : ChildrenOf(getpid(), getpid())) kill(left, SIGKILL);
    }
    usleep(kStepUs);
  }
}

constexpr int kStepMs = 20;
constexpr int kLookMs = 500;  // where only the ends of the replays count
constexpr int kChildMs = 50;  // or the end of a child

// For ranks that compute together: once the replay of one has stopped before its end, others may
// wait for it for good. They have a moment to reach the same difference.
class Grace {
 public:
  explicit Grace(bool together) : together_(together) {}
  void Note(const Replayed& ended) {
    const bool stopped = WIFEXITED(ended.status) && HasStopped(ended.target.scratch);
    if (together_ && stopped && left_ < 0) left_ = kMs;
  }
  // A rank that waits for a turn on a device has not had its moment yet.
  void Extend() {
    if (left_ >= 0) left_ = kMs;
  }
  [[nodiscard]] bool IsOverAfterStep() { return left_ >= 0 && (left_ -= kStepMs) <= 0; }

 private:
  static constexpr int kMs = 5000;
  const bool together_;
  int left_ = -1;
};

// As usual, or hasty in tests.
Standstill::Pace OwnPace() {
  Standstill::Pace pace;
  const char* text = std::getenv(env::kHaste.name);
  const int haste = text == nullptr ? 0 : std::atoi(text);
  if (haste <= 0) return pace;
  return {pace.look / haste, pace.patience / haste, pace.end / haste};
}

// Finds replays that hang: each by itself, or all, if they wait for each other.
class Watch {
 public:
  Watch(std::vector<Replayed>& replays, bool together, const ReplayOptions& options,
        Standstill::RecordedSilence recorded)
      : only_tells_(options.warn_on_divergence && !options.edited), recorded_(std::move(recorded)) {
    outside_.sockets = options.allow_network;
    if (options.may_pause) return;
    if (together) {
      std::vector<Replayed*> all;
      all.reserve(replays.size());
      for (Replayed& replay : replays) all.push_back(&replay);
      Add(all, {});
      return;
    }
    for (Replayed& replay : replays) {
      std::set<pid_t> others;
      for (const Replayed& other : replays)
        if (&other != &replay) others.insert(other.pid);
      Add({&replay}, others);
    }
  }

  void Look() {
    for (Watched& one : watched_) {
      const auto has_ended = [](const Replayed* replay) { return replay->ended; };
      if (std::all_of(one.replays.begin(), one.replays.end(), has_ended)) continue;
      const Standstill::State state = one.standstill.Look();
      if (one.standstill.IsHung() && !only_tells_)
        End(one);
      else if (state > one.told)
        Tell(one, state);
    }
  }

 private:
  struct Watched {
    std::vector<Replayed*> replays;
    Standstill standstill;
    Standstill::State told = Standstill::State::kMoves;
  };

  void Add(const std::vector<Replayed*>& replays, const std::set<pid_t>& others) {
    std::vector<WatchedReplay> watched;
    watched.reserve(replays.size());
    for (const Replayed* replay : replays)
      watched.push_back({replay->target.rank, replay->pid, replay->target.scratch});
    watched_.push_back(
        {replays, Standstill(std::move(watched), others, outside_, pace_, recorded_)});
  }

  static void End(Watched& one) {
    for (Replayed* replay : one.replays)
      if (!replay->ended && !replay->hang) replay->hang = one.standstill.DescribeHang();
    one.standstill.End();
  }

  static void Tell(Watched& one, Standstill::State state) {
    one.told = state;
    Diagnose(fmt::format("replay: it has not got on for {} s:",
                         one.standstill.Patience(state).count() / 1000));
    for (const std::string& line : one.standstill.Describe()) Diagnose("  " + line);
  }

  const bool only_tells_;
  const Standstill::RecordedSilence recorded_;
  const Standstill::Pace pace_ = OwnPace();
  OutsideFiles outside_ = OwnOpenFiles();
  std::vector<Watched> watched_;
};

// Returns when a child ends, or after that time. SIGCHLD is blocked.
void AwaitChild(int ms) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  const timespec most{ms / 1000, ms % 1000 * 1000000L};
  sigtimedwait(&ends, nullptr, &most);
}

// Nothing is to be learnt from how they end.
void EndAll(std::vector<Replayed>& replays) {
  EndDescendants(0);
  for (Replayed& replay : replays) {
    if (!replay.ended) replay.status = SIGKILL;
    replay.ended = true;
  }
}

void WaitInTurns(std::vector<Replayed>& replays, bool together, const TurnArea* area,
                 TurnScheduler* turns, Watch& watch) {
  Grace grace(together);
  for (size_t left = replays.size(); left != 0;) {
    const uint32_t seen = turns == nullptr ? 0 : area->bell().load();
    bool moved = false;
    for (size_t i = 0; i < replays.size(); ++i) {
      Replayed& replay = replays[i];
      if (replay.ended || waitpid(replay.pid, &replay.status, WNOHANG) <= 0) continue;
      replay.ended = moved = true;
      --left;
      grace.Note(replay);
      if (area != nullptr) area->cell(static_cast<uint32_t>(i)).ended.store(1);
      if (turns != nullptr) turns->Ended(i);
    }
    if (turns != nullptr && turns->Step()) {
      moved = true;
      grace.Extend();
      for (const size_t lost : turns->TakeLost()) kill(replays[lost].pid, SIGKILL);
    }
    if (moved) continue;
    if (Interruption::IsOver()) return EndAll(replays);
    watch.Look();
    // What the rank does when its child has ended is of no interest.
    if (std::any_of(replays.begin(), replays.end(), HasChildEnded)) {
      EndDescendants(0);
      for (Replayed& replay : replays) replay.ended = true;
      return;
    }
    const bool has_child = std::any_of(replays.begin(), replays.end(),
                                       [](const Replayed& r) { return !r.child.empty(); });
    if (turns == nullptr)
      AwaitChild(together ? kStepMs : has_child ? kChildMs : kLookMs);
    else
      TurnArea::WaitFor(area->bell(), seen, kStepMs);
    if (!grace.IsOverAfterStep()) continue;
    for (const Replayed& replay : replays)
      if (!replay.ended) kill(replay.pid, SIGKILL);
  }
}

void WaitOnSharedDevices(std::vector<Replayed>& replays, bool together, const SharedArea& shared,
                         Watch& watch) {
  TurnScheduler::Rules rules;
  rules.at_once = shared.at_once;
  std::vector<uint32_t> ranks;
  ranks.reserve(replays.size());
  for (const Replayed& replay : replays) ranks.push_back(replay.target.rank);
  TurnScheduler turns(
      shared.area, std::move(ranks), [] { return OpenCudaSwap(); }, Diagnose, rules);
  WaitInTurns(replays, together, &shared.area, &turns, watch);
  for (size_t i = 0; i < replays.size(); ++i) replays[i].shortage = turns.shortage(i);
  if (turns.swaps() != 0)
    Diagnose(fmt::format("the ranks took turns: device memory was swapped out {} {}",
                         HumanCount(turns.swaps()), turns.swaps() == 1 ? "time" : "times"));
  else if (shared.at_once != 0 && !turns.no_swap().empty())
    Diagnose("the ranks could not take turns: " + turns.no_swap());
}

}  // namespace

void EndDescendants(pid_t but) {
  constexpr useconds_t kStepUs = 2000;
  // This process gets the children of a process that is killed, and finds them in the next pass.
  for (bool any = true; any;) {
    any = false;
    for (const pid_t child : ChildrenOf(getpid(), getpid())) {
      if (child == but) continue;
      const bool reaped = waitpid(child, nullptr, WNOHANG) == child;
      if (!reaped && !ReadProcStat(child).Runs()) continue;  // a zombie for gdb
      any = true;
      if (!reaped) kill(child, SIGKILL);
    }
    if (any) usleep(kStepUs);
  }
}

Status StartReplays(std::vector<Replayed>& replays, const ReplayOptions& options) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (Replayed& replay : replays) {
    auto pid = StartReplay(replay.target, options);
    if (!pid) {
      for (const Replayed& other : replays)
        if (other.pid != 0) kill(other.pid, SIGKILL);
      return tl::unexpected(pid.error());
    }
    replay.pid = *pid;
  }
  return {};
}

void WaitForReplays(std::vector<Replayed>& replays, const ReplayOptions& options,
                    const std::optional<SharedArea>& shared,
                    const Standstill::RecordedSilence& recorded) {
  sigset_t ends;
  sigset_t old;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ends, &old);
  const bool together = !options.fold.empty();
  Watch watch(replays, together, options, recorded);
  if (shared && shared->devices)
    WaitOnSharedDevices(replays, together, *shared, watch);
  else
    WaitInTurns(replays, together, shared ? &shared->area : nullptr, nullptr, watch);
  EndLeftovers();
  sigprocmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace deja::cli
