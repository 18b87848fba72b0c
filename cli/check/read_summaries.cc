#include "cli/check/read_summaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "check/evidence/job.h"
#include "check/evidence/summarize.h"
#include "check/evidence/summary_file.h"
#include "cli/events/rank_summary.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/summaries/trace_damage.h"
#include "cli/version.h"
#include "format/pack/ordered_work.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

// A rank as a worker has read it.
struct ReadRank {
  std::unique_ptr<format::RankReader> reader;  // where it is asked for
  std::optional<check::RankSummary> summary;
  bool is_kept = false;
  std::string unread;  // why there is none
  std::string damage;  // of the recording; empty: none was found
  std::string unused;  // why a summary that was there was not taken
};

ReadRank ReadOne(const format::RankFolder& folder, check::PlaceFinder& places,
                 const ReadSummariesOptions& options) {
  ReadRank read;
  if (options.use_kept && !options.on_rank) {
    auto kept = check::ReadSummaryFile(folder.path, kVersion);
    if (kept) {
      read.summary = std::move(*kept);
      read.is_kept = true;
      // Damage is one reason of several why events are missing.
      if (read.summary->is_partial)
        if (const auto reader = format::RankReader::Open(folder.path))
          read.damage = FindEventDamage(**reader);
      return read;
    }
    if (kept.error().code != ErrorCode::kNotFound) read.unused = kept.error().message;
  }
  // Not by the trace, which keeps what it has opened.
  auto reader = format::RankReader::Open(folder.path);
  if (!reader) {
    read.unread = reader.error().message;
    return read;
  }
  read.summary = check::Summarize(**reader, places, {IsRunning(**reader), options.only_heads});
  read.damage = read.summary->is_partial ? FindEventDamage(**reader) : FindOtherDamage(**reader);
  if (options.on_rank) read.reader = std::move(*reader);
  return read;
}

size_t OwnOf(const ReadSummariesOptions& options, size_t ranks) {
  if (options.own_of_all == 0) return check::Trimmer::kAll;
  return std::clamp(options.own_of_all / ranks, ReadSummariesOptions::kLeastOwn,
                    ReadSummariesOptions::kMostOwn);
}

// One line for all ranks with one reason.
void NoteUnused(const std::map<std::string, std::vector<uint32_t>>& unused,
                std::vector<std::string>& notes) {
  for (const auto& [why, ranks] : unused)
    notes.push_back(fmt::format("{}: {} not used: {}; the recording{} read instead",
                                check::RanksText(ranks),
                                ranks.size() == 1 ? "the summary is" : "summaries are", why,
                                ranks.size() == 1 ? " was" : "s were"));
}

}  // namespace

uint32_t LastAttempt(const format::Trace& trace) {
  uint32_t last = 0;
  for (const format::RankFolder& folder : trace.ranks()) last = std::max(last, folder.attempt);
  return last;
}

std::vector<format::RankFolder> FoldersOfAttempt(const format::Trace& trace, uint32_t attempt,
                                                 std::vector<std::string>& notes) {
  std::vector<format::RankFolder> folders;
  std::set<uint32_t> others;
  for (const format::RankFolder& folder : trace.ranks()) {
    if (folder.attempt == attempt)
      folders.push_back(folder);
    else
      others.insert(folder.rank);
  }
  for (const format::RankFolder& folder : folders) others.erase(folder.rank);
  const std::vector<uint32_t> numbers(others.begin(), others.end());
  if (!numbers.empty() && attempt == LastAttempt(trace))
    notes.push_back(
        fmt::format("{}: not in attempt {}, the last one, which is the one that is checked",
                    check::RanksText(numbers), attempt));
  return folders;
}

Result<TraceSummaries> ReadSummaries(const std::string& path, check::PlaceFinder& places,
                                     const ReadSummariesOptions& options) {
  auto trace = OpenTrace(path);
  if (!trace) return tl::unexpected(trace.error());
  TraceSummaries read;
  size_t count = 0;
  std::vector<std::string> unread;
  std::map<std::string, std::vector<uint32_t>> unused;
  read.attempt = options.attempt == kLastAttempt ? LastAttempt(**trace)
                                                 : static_cast<uint32_t>(options.attempt);
  const std::vector<format::RankFolder> folders =
      FoldersOfAttempt(**trace, read.attempt, read.notes);
  if (folders.empty() && !(*trace)->ranks().empty())
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: {}: no rank has an attempt {}; the last one is {}",
                            options.operation, path, read.attempt, LastAttempt(**trace)));
  const size_t ranks = std::max<size_t>(folders.size(), 1);
  check::Trimmer trimmer(std::max(options.window, options.window_of_all / ranks),
                         OwnOf(options, ranks));
  Progress progress(fmt::format("{} {}", options.operation, path), ProgressUnit::kRanks);
  const auto take = [&](const format::RankFolder& folder, ReadRank& one) {
    if (!one.unused.empty()) unused[one.unused].push_back(folder.rank);
    if (!one.damage.empty()) {
      SayDamaged(fmt::format("rank {}", folder.rank), one.damage);
      read.is_damaged = true;
    }
    if (!one.summary) {
      unread.push_back(fmt::format("{}: rank {}: its recording cannot be read: {}",
                                   options.operation, folder.rank, one.unread));
      return;
    }
    read.from_kept += one.is_kept ? 1 : 0;
    // The folder's name is what other commands take.
    one.summary->rank = folder.rank;
    if (options.on_rank) options.on_rank(*one.reader, *one.summary);
    trimmer.Take(std::move(*one.summary));
    progress.Update(++count, folders.size());
  };
  format::OrderedWork work;
  const format::OrderedWork::Scope scope(work);
  for (const format::RankFolder& folder : folders) {
    auto one = std::make_shared<ReadRank>();
    DEJA_RETURN_IF_ERROR(work.Give({[&, one](size_t) { *one = ReadOne(folder, places, options); },
                                    [&, one]() -> Status {
                                      take(folder, *one);
                                      return {};
                                    }}));
  }
  DEJA_RETURN_IF_ERROR(work.Finish());
  read.ranks = trimmer.Finish();
  if (read.ranks.empty()) {
    for (const std::string& line : unread) Diagnose(line);
    return tl::unexpected(Error{
        .message = fmt::format("{}: {}: no rank in it can be read", options.operation, path)});
  }
  read.is_damaged = read.is_damaged || !unread.empty();
  read.notes.insert(read.notes.end(), unread.begin(), unread.end());
  NoteUnused(unused, read.notes);
  return read;
}

}  // namespace deja::cli
