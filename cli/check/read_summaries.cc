#include "cli/check/read_summaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "check/evidence/job.h"
#include "check/evidence/summarize.h"
#include "cli/events/rank_summary.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

// The ranks of the last attempt. Ranks that have no part in it are left out and noted: their
// earlier calls do not belong to the last calls of the others.
std::vector<format::RankFolder> LastAttempt(const format::Trace& trace,
                                            std::vector<std::string>& notes) {
  uint32_t last = 0;
  for (const format::RankFolder& folder : trace.ranks()) last = std::max(last, folder.attempt);
  std::vector<format::RankFolder> folders;
  std::set<uint32_t> others;
  for (const format::RankFolder& folder : trace.ranks()) {
    if (folder.attempt == last)
      folders.push_back(folder);
    else
      others.insert(folder.rank);
  }
  for (const format::RankFolder& folder : folders) others.erase(folder.rank);
  const std::vector<uint32_t> numbers(others.begin(), others.end());
  if (!numbers.empty())
    notes.push_back(
        fmt::format("{}: not in attempt {}, the last one, which is the one that is checked",
                    check::RanksText(numbers), last));
  return folders;
}

}  // namespace

Result<TraceSummaries> ReadSummaries(const std::string& path, check::PlaceFinder& places,
                                     const ReadSummariesOptions& options) {
  auto trace = format::Trace::Open(path);
  if (!trace) return tl::unexpected(trace.error());
  TraceSummaries read;
  size_t count = 0;
  std::vector<std::string> unread;
  const std::vector<format::RankFolder> folders = LastAttempt(**trace, read.notes);
  check::Trimmer trimmer(
      std::max(options.window, options.window_of_all / std::max<size_t>(folders.size(), 1)));
  Progress progress(fmt::format("{} {}", options.operation, path), ProgressUnit::kRanks);
  for (const format::RankFolder& folder : folders) {
    // Not by the trace, which keeps what it has opened.
    auto reader = format::RankReader::Open(folder.path);
    if (!reader) {
      unread.push_back(fmt::format("{}: rank {}: its recording cannot be read: {}",
                                   options.operation, folder.rank, reader.error().message));
      continue;
    }
    check::RankSummary summary = check::Summarize(**reader, places, {IsRunning(**reader)});
    // The folder's name is what other commands take.
    summary.rank = folder.rank;
    if (options.on_rank) options.on_rank(**reader, summary);
    trimmer.Take(std::move(summary));
    progress.Update(++count, folders.size());
  }
  read.ranks = trimmer.Finish();
  if (read.ranks.empty()) {
    for (const std::string& line : unread) Diagnose(line);
    return tl::unexpected(Error{
        .message = fmt::format("{}: {}: no rank in it can be read", options.operation, path)});
  }
  read.is_damaged = !unread.empty();
  read.notes.insert(read.notes.end(), unread.begin(), unread.end());
  return read;
}

}  // namespace deja::cli
