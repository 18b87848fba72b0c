#include "cli/record/attempt_sweep.h"

#include <algorithm>
#include <utility>

#include "cli/record/trace_sweep.h"
#include "format/layout/child_folder.h"
#include "format/layout/rank_folder.h"
#include "format/repair/folder_thinning.h"
#include "format/repair/recovery.h"

namespace deja::cli {

void AttemptSweep::Pass(format::DiskLedger& ledger) {
  const format::DiskLedger::Gone known = ledger.OfGoneRanks();
  Look();
  if (attempts_.empty()) return;
  format::DiskLedger::Gone found;
  for (const auto& [folder, attempt] : attempts_) found.earlier += attempt.bytes;
  found.all = found.earlier + last_bytes_;
  if (const uint64_t excess = ledger.Correct(known, found); excess != 0) Drop(excess, ledger);
}

void AttemptSweep::Look() {
  const std::vector<format::RankFolderName> names = format::ListRankFolderNames(directory_);
  const auto known = std::exchange(attempts_, {});
  const bool any = std::any_of(names.begin(), names.end(),
                               [](const format::RankFolderName& name) { return name.attempt > 0; });
  last_bytes_ = 0;
  for (size_t i = 0; any && i < names.size(); ++i) {
    const std::string folder =
        directory_ + "/" + format::MakeRankFolderName(names[i].rank, names[i].attempt);
    const auto seen = known.find(folder);
    Attempt attempt = seen != known.end() ? seen->second : Attempt{names[i].attempt, 0, {}};
    if (seen == known.end()) {
      const auto origin = format::ReadOrigin(folder);
      // Another machine has a budget of its own.
      if (!origin || origin->hostname != OwnHostname()) continue;
    }
    const bool is_last = i + 1 == names.size() || names[i].rank != names[i + 1].rank;
    if (attempt.segments.empty()) {
      if (!HasEnded(folder)) continue;
      // The others are completed when the job ends.
      if (!is_last) (void)format::RecoverRank(folder, {});
    }
    if (is_last) {
      last_bytes_ += format::FolderBytes(folder);
      continue;
    }
    if (attempt.segments.empty())
      if (auto segments = format::FinishedSegments(folder)) attempt.segments = std::move(*segments);
    attempt.bytes = format::FolderBytes(folder);
    attempts_.emplace(folder, std::move(attempt));
  }
}

void AttemptSweep::Drop(uint64_t excess, format::DiskLedger& ledger) {
  // Numbers of segments grow from one attempt to the next only where ranks share them.
  using Age = std::pair<uint32_t, uint32_t>;
  std::map<Age, uint64_t> by_age;
  for (const auto& [folder, attempt] : attempts_)
    for (const format::Segment& segment : attempt.segments)
      by_age[{attempt.number, segment.number}] += segment.bytes;
  Age first_kept{~uint32_t{0}, 0};
  for (const auto& [age, bytes] : by_age) {
    if (excess == 0) {
      first_kept = age;
      break;
    }
    excess -= std::min(excess, bytes);
  }
  for (auto& [folder, attempt] : attempts_) {
    const auto goes = [&, number = attempt.number](const format::Segment& segment) {
      return Age{number, segment.number} < first_kept;
    };
    if (attempt.segments.empty() || !goes(attempt.segments.front())) continue;
    uint64_t freed = 0;
    if (auto left = format::DropSegments(folder, goes, "disk budget", freed))
      attempt.segments = std::move(*left);
    ledger.AddOfGone(false, -static_cast<int64_t>(freed));
  }
}

}  // namespace deja::cli
