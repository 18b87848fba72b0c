#include "cli/top/live_job.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/open_trace.h"
#include "common/process/process_identity.h"
#include "common/runtime/clock_ns.h"

namespace deja::cli {
namespace {

// A rank of another machine, whose process cannot be looked at, is taken to run that long.
constexpr uint64_t kRemoteQuietNs = 60'000'000'000;

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "";
}

}  // namespace

Result<LiveJob> LiveJob::Open(const std::string& path) {
  LiveJob job;
  job.directory_ = path;
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return FailErrno("opening: " + path, errno);
  if (!S_ISDIR(facts.st_mode)) {
    DEJA_ASSIGN_OR_RETURN(job.bundle_, OpenTrace(path));
    job.directory_ = job.bundle_->directory();
  }
  return job;
}

bool LiveJob::is_running() const {
  return std::any_of(shown_.begin(), shown_.end(), [](const LiveRank& r) { return r.is_running; });
}

std::map<uint32_t, std::string> LiveJob::Damage() const {
  std::map<uint32_t, std::string> damage;
  for (const auto& [folder, its] : read_) {
    const std::string& found = its.events != nullptr ? its.events->damage() : its.damage;
    if (!found.empty()) damage[its.state.rank] = found;
  }
  return damage;
}

void LiveJob::Poll() {
  notes_.clear();
  FindRanks();
  shown_.clear();
  for (auto& [folder, its] : read_) {
    PollRank(its, folder);
    if (its.events != nullptr) shown_.push_back(its.state);
  }
  std::sort(shown_.begin(), shown_.end(),
            [](const LiveRank& a, const LiveRank& b) { return a.rank < b.rank; });
}

void LiveJob::FindRanks() {
  auto folders = format::ListRankFolders(directory_);
  if (!folders) return notes_.push_back(folders.error().message);
  uint32_t attempt = 0;
  for (const format::RankFolder& folder : *folders) attempt = std::max(attempt, folder.attempt);
  std::map<std::string, Read> kept;
  for (const format::RankFolder& folder : *folders) {
    if (folder.attempt != attempt) continue;
    const auto known = read_.find(folder.path);
    Read& its = kept[folder.path];
    if (known != read_.end()) its = std::move(known->second);
    its.state.rank = folder.rank;
  }
  read_ = std::move(kept);
}

void LiveJob::PollRank(Read& its, const std::string& folder) {
  if (its.events == nullptr) {
    auto opened = format::LiveEvents::Open(folder);
    if (!opened) {
      if (opened.error().code == ErrorCode::kCorrupt) its.damage = opened.error().message;
      return notes_.push_back(opened.error().message);
    }
    its.damage.clear();
    its.events = std::move(*opened);
    its.state = LiveRank(its.state.rank, its.events->header());
    its.quiet_since_ns = ClockNs(CLOCK_MONOTONIC);
  }
  bool is_quiet = true;
  const Status polled = its.events->Poll([&](const format::Event& event) {
    is_quiet = false;
    its.state.Take(event);
  });
  if (!polled) {
    notes_.push_back(polled.error().message);
    its.events = nullptr;
    return;
  }
  if (!is_quiet) its.quiet_since_ns = ClockNs(CLOCK_MONOTONIC);
  its.state.is_finished = its.events->is_finished();
  const bool is_here = its.state.host == HostName();
  const bool lives = is_here ? its.events->has_live_tail() && Runs(static_cast<int>(its.state.pid))
                             : ClockNs(CLOCK_MONOTONIC) - its.quiet_since_ns < kRemoteQuietNs;
  its.state.is_running = !its.state.is_finished && lives;
  if (its.state.is_finished && !its.state.exit_code && its.events->footer().fate.known) {
    const format::ProcessFate& fate = its.events->footer().fate;
    if (fate.signal != 0)
      its.state.crashed_by = static_cast<int>(fate.signal);
    else
      its.state.exit_code = static_cast<int>(fate.exit_code);
  }
}

}  // namespace deja::cli
