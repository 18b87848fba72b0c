#include "cli/merge/merge_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>

#include "check/evidence/job.h"
#include "check/evidence/summarize.h"
#include "cli/events/rank_summary.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace deja::cli {
namespace {

// Clocks that no one sets differ by more than that rarely, recordings of two runs nearly always.
constexpr uint64_t kMostApartNs = uint64_t{3600} * 1'000'000'000;
// What threads need to wake is no difference of clocks.
constexpr int64_t kNoiseNs = 10'000'000;

// Places in the source are not needed here.
class NoPlaces final : public check::PlaceFinder {
 public:
  check::Site Find(const std::vector<check::CodeAddress>&, bool) override { return {}; }
};

Result<MergePart> ReadPart(const std::string& path, Progress& progress, size_t done, size_t all) {
  MergePart part;
  part.path = path;
  DEJA_ASSIGN_OR_RETURN(part.trace, OpenTrace(path));
  part.begin_ns = UINT64_MAX;
  NoPlaces places;
  const auto& ranks = part.trace->ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    const format::RankFolder& folder = ranks[i];
    // Not by the trace, which keeps what it has opened.
    auto reader = format::RankReader::Open(folder.path);
    if (!reader)
      return Fail(reader.error().code, fmt::format("merging: {}: rank {}: {}", path, folder.rank,
                                                   reader.error().message));
    if (IsRunning(**reader))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("merging: {}: rank {} is still being recorded; merge when the job "
                              "has ended",
                              path, folder.rank));
    const format::TraceHeader& header = (*reader)->header();
    if (part.job_id.empty()) part.job_id = std::string(header.job_id);
    part.hosts.emplace_back(header.process.hostname);
    check::RankSummary summary = check::Summarize(**reader, places, {false});
    summary.rank = folder.rank;
    part.begin_ns = std::min(part.begin_ns, header.start_wall_ns);
    part.end_ns = std::max({part.end_ns, header.start_wall_ns, summary.last_time_ns});
    for (const check::CommSummary& comm : summary.comms)
      if (comm.nranks > 1) part.communicators.insert({comm.hash, comm.nranks});
    part.summaries.push_back(std::move(summary));
    progress.Update(done * ranks.size() + i + 1, all * ranks.size());
  }
  return part;
}

Status CheckWorldSizes(MergeParts& merged) {
  const MergePart* first = nullptr;
  for (const MergePart& part : merged.parts) {
    for (const check::RankSummary& rank : part.summaries) {
      if (rank.world_size == 0) continue;
      if (merged.world_size == 0) {
        merged.world_size = rank.world_size;
        first = &part;
      }
      if (rank.world_size != merged.world_size)
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("merging: {}: rank {} is of a job of {} ranks, and {} of one of "
                        "{}; give traces of one job",
                        part.path, rank.rank, rank.world_size, first->path, merged.world_size));
    }
  }
  return {};
}

Status CheckRanks(const MergeParts& merged) {
  std::map<std::pair<uint32_t, uint32_t>, const MergePart*> owners;
  for (const MergePart& part : merged.parts) {
    for (const format::RankFolder& folder : part.trace->ranks()) {
      const auto [owner, added] = owners.try_emplace({folder.rank, folder.attempt}, &part);
      if (!added)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("merging: {}: it has rank {}{}, which {} has, too; give each rank "
                                "once",
                                part.path, folder.rank,
                                folder.attempt == 0 ? "" : fmt::format(".{}", folder.attempt),
                                owner->second->path));
    }
  }
  return {};
}

bool HaveCommon(const MergePart& a, const MergePart& b) {
  if (!a.job_id.empty() && a.job_id == b.job_id) return true;
  return std::any_of(a.communicators.begin(), a.communicators.end(),
                     [&](const auto& comm) { return b.communicators.contains(comm); });
}

bool AreOfOneTime(const MergePart& a, const MergePart& b) {
  return a.begin_ns < b.end_ns + kMostApartNs && b.begin_ns < a.end_ns + kMostApartNs;
}

// Every trace hangs together with the first one, through others perhaps.
Status CheckCommunicators(const MergeParts& merged) {
  const auto& parts = merged.parts;
  std::vector<bool> is_reached(parts.size());
  std::vector<size_t> reached = {0};
  is_reached[0] = true;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (size_t other = 0; other < parts.size(); ++other) {
      if (is_reached[other] || !HaveCommon(parts[reached[i]], parts[other])) continue;
      if (!AreOfOneTime(parts[reached[i]], parts[other]))
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("merging: {} and {}: they were recorded more than an hour apart; "
                                "give traces of one run",
                                parts[reached[i]].path, parts[other].path));
      is_reached[other] = true;
      reached.push_back(other);
    }
  }
  for (size_t other = 0; other < parts.size(); ++other)
    if (!is_reached[other])
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("merging: {} and {}: their ranks have no communicator in common; "
                              "give traces of one job",
                              parts.front().path, parts[other].path));
  return {};
}

uint64_t LeftAt(const check::Call& call) {
  return call.time_ns + uint64_t{1000} * call.lasted_us;
}

// Differences between the ends of collectives that two machines were in, by their numbers.
using Machine = size_t;
using Differences = std::map<std::pair<Machine, Machine>, std::vector<int64_t>>;

void AddDifferences(const check::Job& job, const check::Communicator& communicator,
                    const std::vector<Machine>& machines, Differences& differences) {
  if (communicator.is_ambiguous) return;
  // One rank of each machine tells its clock.
  std::map<Machine, const check::CommSummary*> of_machines;
  for (const check::Member& member : communicator.members)
    of_machines.try_emplace(machines[member.rank], &job.CommOf(member));
  for (auto a = of_machines.begin(); a != of_machines.end(); ++a) {
    for (auto b = std::next(a); b != of_machines.end(); ++b) {
      const auto& first = a->second->collectives;
      const auto& second = b->second->collectives;
      for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
        const bool tells = first[i].Is(check::kDone) && second[i].Is(check::kDone) &&
                           first[i].signature == second[i].signature &&
                           check::WaitsForAll(job.signatures[first[i].signature].operation);
        if (!tells) continue;
        const auto ahead = static_cast<int64_t>(LeftAt(second[i]) - LeftAt(first[i]));
        differences[{a->first, b->first}].push_back(ahead);
        differences[{b->first, a->first}].push_back(-ahead);
      }
    }
  }
}

int64_t MiddleOf(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Result<MergeParts> ReadMergeParts(const std::vector<std::string>& paths) {
  MergeParts merged;
  Progress progress("reading the traces", ProgressUnit::kRanks);
  for (const std::string& path : paths) {
    DEJA_ASSIGN_OR_RETURN(MergePart part,
                          ReadPart(path, progress, merged.parts.size(), paths.size()));
    merged.parts.push_back(std::move(part));
  }
  DEJA_RETURN_IF_ERROR(CheckRanks(merged));
  DEJA_RETURN_IF_ERROR(CheckWorldSizes(merged));
  DEJA_RETURN_IF_ERROR(CheckCommunicators(merged));
  return merged;
}

std::vector<std::vector<int64_t>> ClocksAhead(const MergeParts& merged) {
  // Hosts of two traces may have one name, as containers do.
  std::map<std::pair<size_t, std::string>, Machine> numbers;
  std::map<uint32_t, Machine> of_ranks;
  std::vector<check::RankSummary> summaries;
  std::vector<std::vector<Machine>> of_parts(merged.parts.size());
  for (size_t p = 0; p < merged.parts.size(); ++p) {
    const MergePart& part = merged.parts[p];
    for (size_t r = 0; r < part.summaries.size(); ++r) {
      const Machine machine = numbers.try_emplace({p, part.hosts[r]}, numbers.size()).first->second;
      of_parts[p].push_back(machine);
      // A job has each rank once: its last attempt.
      if (r + 1 < part.summaries.size() && part.summaries[r + 1].rank == part.summaries[r].rank)
        continue;
      of_ranks[part.summaries[r].rank] = machine;
      summaries.push_back(part.summaries[r]);
    }
  }
  const check::Job job(std::move(summaries));
  std::vector<Machine> machines;
  for (const check::RankSummary& rank : job.ranks) machines.push_back(of_ranks[rank.rank]);
  Differences differences;
  for (const check::Communicator& communicator : job.communicators)
    AddDifferences(job, communicator, machines, differences);
  // From the first machine on, each from one that is known.
  std::vector<std::optional<int64_t>> ahead(numbers.size());
  std::vector<Machine> known = {0};
  ahead[0] = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    for (const auto& [pair, values] : differences) {
      if (pair.first != known[i] || ahead[pair.second]) continue;
      const int64_t more = MiddleOf(values);
      ahead[pair.second] = *ahead[pair.first] + (std::abs(more) < kNoiseNs ? 0 : more);
      known.push_back(pair.second);
    }
  }
  std::vector<std::vector<int64_t>> result;
  for (const std::vector<Machine>& of_part : of_parts) {
    result.emplace_back();
    for (const Machine machine : of_part) result.back().push_back(ahead[machine].value_or(0));
  }
  return result;
}

}  // namespace deja::cli
