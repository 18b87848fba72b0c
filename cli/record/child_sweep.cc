// Completing the folders of the ranks' children.
#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "cli/child_processes.h"
#include "cli/record/trace_sweep.h"
#include "common/process/process_identity.h"
#include "format/layout/child_folder.h"
#include "format/reader/rank_reader.h"
#include "format/repair/recovery.h"
#include "format/tail/tail_reader.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// An exec'd image has the pid of the one before it, so ends are known by process and not by image.
std::string WithoutImage(const std::string& path) {
  const size_t plus = path.rfind('+');
  const size_t slash = path.rfind('/');
  return plus == std::string::npos || (slash != std::string::npos && plus < slash)
             ? path
             : path.substr(0, plus);
}

// What processes saw of the ends of those that they have made, by the path of the latter.
class Ends {
 public:
  void ReadFrom(const std::string& folder, const format::Origin& origin) {
    auto reader = format::RankReader::Open(folder);
    if (!reader) return;
    std::map<uint32_t, std::string> threads;
    std::map<uint32_t, std::string> made;  // pid -> path, the last one
    std::vector<std::pair<uint32_t, format::Child>> children;
    auto cursor = (*reader)->Events();
    while (const format::Event* event = cursor->Next()) {
      if (const auto* start = event->As<format::ThreadStart>())
        threads[start->thread] = std::string(start->name);
      else if (const auto* child = event->As<format::Child>())
        children.emplace_back(event->thread, *child);
    }
    // In the order of the file: the thread that waits may be written before the one that made it.
    for (const auto& [thread, child] : children)
      if (!child.ended)
        made[child.pid] = fmt::format("{}{}{}/{}", origin.path, origin.path.empty() ? "" : "/",
                                      threads[thread], child.number);
    for (const auto& [thread, child] : children) {
      auto at = made.find(child.pid);
      if (!child.ended || at == made.end()) continue;
      fates_[{origin.root, at->second}] = {true, child.exit_code, child.signal};
    }
  }

  [[nodiscard]] format::ProcessFate Of(const format::Origin& origin,
                                       const std::vector<ProcessEnd>& ends) const {
    auto fate = fates_.find({origin.root, WithoutImage(origin.path)});
    if (fate != fates_.end()) return fate->second;
    for (auto end = ends.rbegin(); end != ends.rend(); ++end)
      if (static_cast<uint32_t>(end->pid) == origin.pid)
        return {true, end->exit_code, static_cast<uint32_t>(end->signal)};
    return {};
  }

 private:
  std::map<std::pair<std::string, std::string>, format::ProcessFate> fates_;
};

// A folder whose writer still lives is left alone: RecoverRank would say so, too, but only after it
// has read everything.
bool WriterLives(const std::string& tail) {
  if (tail.empty()) return false;
  auto reader = format::TailReader::Open(tail, "");
  return reader && (*reader)->WriterAlive();
}

constexpr int kTickMs = 10;
constexpr int kMostMs = 1000;

// A process that the job has left behind, and so new that it may not have its folder yet.
bool HasNewOrphan() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ticks = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const uint64_t since = static_cast<uint64_t>(now.tv_sec - kMostMs / 1000) * ticks;
  const std::vector<pid_t> orphans = ChildrenOf(getpid(), getpid());
  return std::any_of(orphans.begin(), orphans.end(), [&](pid_t orphan) {
    const auto pid = static_cast<uint32_t>(orphan);
    return Runs(pid) && StartTicks(pid) >= since;
  });
}

// Children that their parents did not wait for end a moment later than the job: their folders could
// be neither completed nor removed. Those of a daemon stay as they are.
void AwaitWriters(const std::string& directory) {
  int waited = 0;
  for (; HasNewOrphan() && waited < kMostMs; waited += kTickMs) usleep(kTickMs * 1000);
  for (const std::string& folder : format::ListChildFolders(directory)) {
    auto origin = format::ReadOrigin(folder);
    for (; origin && WriterLives(origin->tail) && waited < kMostMs; waited += kTickMs)
      usleep(kTickMs * 1000);
  }
}

void RemoveChild(const std::string& folder, const std::string& tail) {
  std::error_code error;
  fs::remove_all(folder, error);
  format::RemoveTail(tail);
}

void Count(const std::string& folder, SweptChildren& swept) {
  auto reader = format::RankReader::Open(folder);
  if (!reader) return;
  swept.events_lost += (*reader)->totals().events_lost;
  swept.payloads_lost += (*reader)->totals().payloads_lost;
}

}  // namespace

bool HasEnded(const std::string& folder) {
  std::error_code error;
  auto origin = format::ReadOrigin(folder);
  return origin &&
         (origin->tail.empty() || !fs::exists(origin->tail, error) || !WriterLives(origin->tail));
}

void SweepEndedChildren(const std::string& directory) {
  std::error_code error;
  for (const std::string& folder : format::ListChildFolders(directory)) {
    auto origin = format::ReadOrigin(folder);
    // Only what has left a tail: the others are complete.
    if (!origin || origin->tail.empty() || !fs::exists(origin->tail, error)) continue;
    if (!WriterLives(origin->tail)) (void)format::RecoverRank(folder, {});
  }
}

SweptChildren SweepChildren(const std::string& directory, const std::vector<ProcessEnd>& ends) {
  AwaitWriters(directory);
  SweptChildren swept;
  auto ranks = format::ListRankFolders(directory);
  std::vector<format::Origin> origins;
  Ends seen;
  if (ranks)
    for (const format::RankFolder& rank : *ranks) {
      origins.push_back(format::ReadOrigin(rank.path).value_or(format::Origin{}));
    }
  struct Kept {
    std::string folder;
    format::Origin origin;
    bool is_child = true;  // of a rank, and not what one was before its fork
  };
  std::vector<Kept> kept;
  std::set<size_t> parents;
  for (const std::string& folder : format::ListChildFolders(directory)) {
    auto origin = format::ReadOrigin(folder);
    if (!origin) {
      swept.errors.push_back(origin.error().message);
      continue;
    }
    std::string name;
    const int owner = format::OwnerOf(*origin, origins, name);
    const bool lives = WriterLives(origin->tail);
    if (owner < 0 && !format::IsForkAncestor(*origin, origins)) {
      if (!lives) RemoveChild(folder, origin->tail);
      continue;
    }
    if (owner >= 0) parents.insert(static_cast<size_t>(owner));
    if (lives) {
      ++swept.still_running;
      continue;
    }
    kept.push_back({folder, std::move(*origin), owner >= 0});
  }
  for (size_t parent : parents) seen.ReadFrom((*ranks)[parent].path, origins[parent]);
  for (const Kept& child : kept) seen.ReadFrom(child.folder, child.origin);
  for (const Kept& child : kept) {
    auto report = format::RecoverRank(child.folder, seen.Of(child.origin, ends));
    if (!report) swept.errors.push_back(report.error().message);
    (child.is_child ? swept.kept : swept.before_forks).push_back(child.folder);
    Count(child.folder, swept);
  }
  return swept;
}

}  // namespace deja::cli
