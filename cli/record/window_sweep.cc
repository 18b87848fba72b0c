#include "cli/record/window_sweep.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "common/env_vars.h"
#include "format/layout/child_folder.h"
#include "format/layout/payload_segments.h"
#include "format/repair/folder_thinning.h"

namespace deja::cli {

void WindowSweep::Pass() {
  FindMappings();
  FindFinished();
  DropExpired(true);
  StayWithinPool();
  if (ledger_ != nullptr) attempts_.Pass(*ledger_);
}

void WindowSweep::Finish() {
  FindMappings();
  FindFinished();
  DropExpired(false);
  if (ledger_ != nullptr) attempts_.Pass(*ledger_);
}

void WindowSweep::FindMappings() {
  const char* chosen = std::getenv(env::kTailDir.name);
  const std::string tails = chosen != nullptr && *chosen != '\0' ? chosen : "/dev/shm";
  if (board_ == nullptr) board_ = format::WindowBoard::OfJob(tails, job_id_, false);
  if (ledger_ == nullptr) ledger_ = format::DiskLedger::OfJob(tails, job_id_);
}

void WindowSweep::FindFinished() {
  for (const std::string& folder : format::ListChildFolders(directory_)) {
    if (finished_.contains(folder)) continue;
    if (auto segments = format::FinishedSegments(folder))
      finished_.emplace(folder, std::move(*segments));
  }
}

int64_t WindowSweep::LastWritten(const std::string& folder, const format::Segment& segment) {
  struct stat info {};
  const std::string path = folder + "/" + format::SegmentFileName(segment.number);
  return stat(path.c_str(), &info) == 0 ? info.st_mtime : std::time(nullptr);
}

bool WindowSweep::IsExpired(const std::string& folder, const format::Segment& segment,
                            bool running) const {
  if (board_ == nullptr || segment.number < board_->marked_end()) return false;
  if (keep_seconds_ != 0 && running &&
      std::time(nullptr) - LastWritten(folder, segment) > static_cast<int64_t>(keep_seconds_))
    return true;
  // What came before the first step is what a replay from a later step begins with.
  return keep_steps_ != 0 && segment.last_step != 0 && !board_->MayBeWanted(segment.number);
}

void WindowSweep::DropExpired(bool running) {
  if (keep_steps_ == 0 && keep_seconds_ == 0) return;
  for (auto& [folder, segments] : finished_) {
    const auto goes = [&, &name = folder](const format::Segment& segment) {
      return IsExpired(name, segment, running);
    };
    if (segments.empty() || !goes(segments.front())) continue;
    uint64_t freed = 0;
    if (auto left = format::DropSegments(folder, goes, "", freed)) segments = std::move(*left);
    if (ledger_ != nullptr) ledger_->AddOfGone(true, -static_cast<int64_t>(freed));
  }
}

void WindowSweep::StayWithinPool() {
  uint64_t excess = ledger_ == nullptr ? 0 : ledger_->ChildrenExcess();
  if (excess == 0) return;
  std::vector<std::pair<int64_t, std::string>> by_age;
  for (const auto& [folder, segments] : finished_)
    if (!segments.empty()) by_age.emplace_back(LastWritten(folder, segments.front()), folder);
  std::sort(by_age.begin(), by_age.end());
  for (const auto& [written, folder] : by_age) {
    if (excess == 0) return;
    uint64_t chosen = 0;
    const auto goes = [&](const format::Segment& segment) {
      const bool marked = board_ != nullptr && segment.number < board_->marked_end();
      if (marked || chosen >= excess) return false;
      chosen += segment.bytes;
      return true;
    };
    uint64_t freed = 0;
    if (auto left = format::DropSegments(folder, goes, "disk budget", freed))
      finished_[folder] = std::move(*left);
    ledger_->AddOfGone(true, -static_cast<int64_t>(freed));
    excess -= std::min(excess, freed);
  }
}

}  // namespace deja::cli
