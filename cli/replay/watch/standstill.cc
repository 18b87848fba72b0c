#include "cli/replay/watch/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "cli/replay/report/replay_report.h"
#include "common/runtime/own_thread_name.h"

namespace deja::cli {
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
// the first of its process that waits for short times, again and again, looks for something.
Standstill::State Standstill::Judge(const ProcessWaits& now) const {
  if (now.threads.empty() || now.zombies != last_.zombies) return State::kMoves;
  State state = State::kStands;
  for (const ThreadWait& thread : now.threads) {
    if (IsOwn(thread)) continue;
    const ThreadWait* before = SameThread(last_, thread);
    if (before == nullptr || thread.kind == WaitKind::kNone) return State::kMoves;
    const bool stands = thread.switches == before->switches;
    if (thread.kind == WaitKind::kEndless && stands) continue;
    // A long sleep ends by itself, and so may what the process does first.
    if (thread.kind != WaitKind::kTimed || stands || thread.tid == thread.pid) return State::kMoves;
    state = State::kIdles;
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
  const State state = Judge(waits);
  last_ = std::move(waits);
  if (state == State::kMoves) moved_ = now;
  if (state != State::kStands) idled_ = now;
  state_ = State::kMoves;
  if (now - idled_ >= pace_.patience)
    state_ = State::kStands;
  else if (now - moved_ >= pace_.patience)
    state_ = State::kIdles;
  return state_;
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
    if (thread.kind != WaitKind::kEndless) continue;
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
