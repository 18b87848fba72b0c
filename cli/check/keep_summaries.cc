#include "cli/check/keep_summaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "check/evidence/job.h"
#include "check/evidence/summarize.h"
#include "check/evidence/summary_file.h"
#include "cli/check/read_summaries.h"
#include "cli/events/rank_summary.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/summaries/trace_damage.h"
#include "cli/version.h"
#include "format/layout/rank_folder.h"
#include "format/pack/ordered_work.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

constexpr const char* kOperation = "summarizing";

std::optional<format::RankFolder> AsRankFolder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "run.deja/rank-00003/"
  const auto name = format::ParseRankFolderName(folder.filename().string());
  if (!name) return std::nullopt;
  return format::RankFolder{name->rank, name->attempt, folder.string()};
}

// Those of the trace that are asked for.
Result<std::vector<format::RankFolder>> FoldersOf(const std::string& path,
                                                  const std::vector<uint32_t>& ranks) {
  if (const auto folder = AsRankFolder(path)) {
    const bool is_meant = ranks.empty() || ranks == std::vector<uint32_t>{folder->rank};
    if (is_meant) return std::vector<format::RankFolder>{*folder};
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}: it is the folder of rank {}; leave --ranks out, or name the "
                            "trace",
                            kOperation, path, folder->rank));
  }
  DEJA_ASSIGN_OR_RETURN(const auto trace, OpenTrace(path));
  if (!std::filesystem::is_directory(path))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}: summaries lie beside recordings, and this is a bundle; unpack "
                            "it first",
                            kOperation, path));
  std::vector<std::string> notes;
  std::vector<format::RankFolder> folders = FoldersOfAttempt(*trace, LastAttempt(*trace), notes);
  if (ranks.empty()) return folders;
  std::vector<format::RankFolder> wanted;
  for (const uint32_t rank : ranks) {
    const auto found = std::find_if(folders.begin(), folders.end(),
                                    [&](const auto& folder) { return folder.rank == rank; });
    if (found == folders.end())
      return Fail(ErrorCode::kNotFound, fmt::format("{}: {}: rank {} is not in its last attempt",
                                                    kOperation, path, rank));
    wanted.push_back(*found);
  }
  return wanted;
}

struct Kept {
  uint64_t bytes = 0;
  uint64_t events_bytes = 0;
  bool is_partial = false;
  std::string damage;
};

Result<Kept> KeepOne(const format::RankFolder& folder, check::PlaceFinder& places) {
  DEJA_ASSIGN_OR_RETURN(const check::SummarySource source, check::SummarySourceOf(folder.path));
  DEJA_ASSIGN_OR_RETURN(const auto reader, format::RankReader::Open(folder.path));
  if (IsRunning(*reader))
    return Fail(ErrorCode::kInvalidArgument,
                "it is being recorded; `deja check` reads it as it is, summarize it when it has "
                "ended");
  check::RankSummary summary = check::Summarize(*reader, places, {});
  summary.rank = folder.rank;
  DEJA_ASSIGN_OR_RETURN(const uint64_t bytes,
                        check::WriteSummaryFile(folder.path, source, kVersion, summary));
  return Kept{bytes, source.bytes, summary.is_partial, FindEventDamage(*reader)};
}

}  // namespace

Result<KeptSummaries> KeepSummaries(const std::string& path, const std::vector<uint32_t>& ranks,
                                    check::PlaceFinder& places) {
  DEJA_ASSIGN_OR_RETURN(const std::vector<format::RankFolder> folders, FoldersOf(path, ranks));
  KeptSummaries all;
  Progress progress(fmt::format("{} {}", kOperation, path), ProgressUnit::kRanks);
  format::OrderedWork work;
  const format::OrderedWork::Scope scope(work);
  for (const format::RankFolder& folder : folders) {
    auto kept = std::make_shared<Result<Kept>>(Kept{});
    const auto deliver = [&, kept]() -> Status {
      if (!*kept)
        return Fail(kept->error().code,
                    fmt::format("{}: {}: {}", kOperation, folder.path, kept->error().message),
                    kept->error().sys_errno);
      all.ranks.push_back(folder.rank);
      all.bytes += (*kept)->bytes;
      all.events_bytes += (*kept)->events_bytes;
      if (!(*kept)->damage.empty())
        SayDamaged(fmt::format("rank {}", folder.rank), (*kept)->damage);
      all.is_partial = all.is_partial || (*kept)->is_partial || !(*kept)->damage.empty();
      progress.Update(all.ranks.size(), folders.size());
      return {};
    };
    DEJA_RETURN_IF_ERROR(
        work.Give({[&, kept](size_t) { *kept = KeepOne(folder, places); }, deliver}));
  }
  DEJA_RETURN_IF_ERROR(work.Finish());
  return all;
}

}  // namespace deja::cli
