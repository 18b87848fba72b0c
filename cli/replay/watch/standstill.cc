#include "cli/replay/watch/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

#include "cli/replay/report/replay_report.h"
#include "common/os/activity_count.h"
#include "common/runtime/own_thread_name.h"

namespace deja::cli {

using std::chrono::milliseconds;

namespace {

bool IsOwn(const ThreadWait& thread) {
  return thread.name == kOwnThreadName;
}

const ThreadWait* SameThread(const ProcessWaits& waits, const ThreadWait& thread) {
  for (const ThreadWait& other : waits.threads)
    if (other.tid == thread.tid && other.pid == thread.pid) return &other;
  return nullptr;
}

}  // namespace

// A thread that has not begun another wait since the last look stands where it stood. One beside
// the first of its process that waits for short times, again and again, looks for something. A long
// sleep ends by itself, and so may what the process's first thread does. Such waits are silence
// while nothing that was recorded happens.
Standstill::State Standstill::Judge(const ProcessWaits& now) const {
  if (now.threads.empty() || now.zombies != last_.zombies) return State::kMoves;
  State state = State::kStands;
  for (const ThreadWait& thread : now.threads) {
    if (IsOwn(thread)) continue;
    const ThreadWait* before = SameThread(last_, thread);
    if (before == nullptr || thread.kind == WaitKind::kNone) return State::kMoves;
    const bool stands = thread.switches == before->switches;
    if (thread.kind == WaitKind::kEndless && stands) continue;
    if (thread.kind != WaitKind::kTimed) return State::kMoves;
    const bool looks = !stands && thread.tid != thread.pid;
    state = std::min(state, looks ? State::kIdles : State::kSilent);
  }
  for (const ThreadWait& thread : last_.threads)
    if (!IsOwn(thread) && SameThread(now, thread) == nullptr) return State::kMoves;
  return state;
}

Standstill::State Standstill::Look() {
  const Clock::time_point now = Clock::now();
  if (now - looked_ < pace_.look) return state_;
  looked_ = now;
  ProcessWaits waits = WaitsBelowThis(others_, outside_);
  const uint64_t served = ServedSoFar();
  State state = Judge(waits);
  if (state == State::kSilent && served != served_) state = State::kMoves;
  last_ = std::move(waits);
  served_ = served;
  for (size_t other = 0; other < reached_.size(); ++other)
    if (state < static_cast<State>(other)) reached_[other] = now;
  state_ = State::kMoves;
  if (TimeIn(State::kStands) >= pace_.patience)
    state_ = State::kStands;
  else if (TimeIn(State::kIdles) >= pace_.patience)
    state_ = State::kIdles;
  else if (TimeIn(State::kSilent) >= pace_.patience &&
           TimeIn(State::kSilent) >= pace_.patience + LongestSilence() && !UsesDevice(last_))
    state_ = State::kSilent;
  return state_;
}

uint64_t Standstill::ServedSoFar() const {
  uint64_t served = 0;
  for (const WatchedReplay& replay : replays_) served += SumOfActivity(replay.scratch);
  return served;
}

milliseconds Standstill::LongestSilence() {
  if (!silence_) {
    silence_ = milliseconds(0);
    for (const WatchedReplay& replay : replays_)
      silence_ = std::max(*silence_, recorded_(replay.rank));
  }
  return *silence_;
}

milliseconds Standstill::TimeIn(State state) const {
  return std::chrono::duration_cast<milliseconds>(looked_ - reached_[static_cast<size_t>(state)]);
}

milliseconds Standstill::Patience(State state) const {
  return pace_.patience + (state == State::kSilent ? *silence_ : milliseconds(0));
}

bool Standstill::IsHung() const {
  return state_ == State::kStands ||
         (state_ == State::kSilent && TimeIn(State::kSilent) >= pace_.end + *silence_);
}

Hang Standstill::DescribeHang() const {
  return {Reason(), Describe()};
}

std::string Standstill::Reason() const {
  if (state_ == State::kStands) return "each of its threads waited for another";
  return fmt::format(
      "nothing that was recorded happened for {} s, and its threads waited; the recorded run was "
      "silent for {} s at most",
      TimeIn(State::kSilent).count() / 1000, silence_->count() / 1000);
}

std::string Standstill::NameOf(pid_t pid) const {
  std::string name =
      replays_.size() == 1 ? fmt::format("a child of rank {}", replays_[0].rank) : "a child";
  for (const WatchedReplay& replay : replays_) {
    const std::string rank = fmt::format("rank {}", replay.rank);
    if (pid == replay.root) name = rank;
    for (const ReportLine& line : ReadReport(replay.scratch).lines)
      if (const auto* start = line.As<StartLine>(); start != nullptr && start->pid == pid)
        name = line.child.empty() ? rank : fmt::format("{}, child {},", rank, line.child);
  }
  return fmt::format("{} (process {})", name, pid);
}

std::vector<std::string> Standstill::Describe() const {
  constexpr size_t kMost = 12;
  std::vector<std::string> lines;
  for (const pid_t pid : last_.zombies) lines.push_back(NameOf(pid) + " has ended");
  std::map<pid_t, std::vector<std::string>> by_process;
  for (const ThreadWait& thread : last_.threads) {
    if (thread.what.empty() || IsOwn(thread)) continue;
    std::string what = thread.what;
    if (const size_t at = what.find("pipe:[");
        at != std::string::npos && what.find(',') == std::string::npos) {
      const std::vector<pid_t> writers = WritersOf(what.substr(at), last_);
      const bool own = writers.size() == 1 && writers[0] == thread.pid;
      std::string who = own ? "itself only" : "";
      for (const pid_t writer : writers)
        if (!own) who += (who.empty() ? "" : ", ") + NameOf(writer);
      what += "; its other end is with " + (who.empty() ? "nothing here" : who);
    }
    if (thread.tid != thread.pid) what = fmt::format("thread {} {}", thread.name, what);
    std::vector<std::string>& told = by_process[thread.pid];
    if (std::find(told.begin(), told.end(), what) == told.end()) told.push_back(what);
  }
  for (const auto& [pid, told] : by_process)
    for (const std::string& what : told) lines.push_back(NameOf(pid) + " " + what);
  if (lines.size() > kMost) {
    const size_t more = lines.size() - kMost;
    lines.resize(kMost);
    lines.push_back(fmt::format("{} more waits", more));
  }
  return lines;
}

void Standstill::End() const {
  std::set<pid_t> processes;
  for (const ThreadWait& thread : last_.threads) processes.insert(thread.pid);
  for (const pid_t pid : processes) kill(pid, SIGKILL);
}

}  // namespace deja::cli
