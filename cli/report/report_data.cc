#include "cli/report/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "check/timeline/timeline.h"
#include "cli/check/check_report.h"
#include "cli/output.h"
#include "cli/report/surroundings_table.h"
#include "common/text/plain_text.h"

namespace deja::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostFindings = 40;
constexpr size_t kMostListed = 200;  // notes, evidence, differences
constexpr size_t kMostRanks = 4096;
constexpr size_t kMostSteps = 2000;
constexpr size_t kMostPackages = 600;

// Cuts and cleans every string of `value`. Names of fields are this file's own.
void MakePlain(json& value) {
  if (value.is_string()) {
    std::string text = PlainText(value.get_ref<const std::string&>());
    if (text.size() > kLongestText) {
      size_t end = kLongestText;
      while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
      text = text.substr(0, end) + "…";
    }
    value = std::move(text);
  } else if (value.is_structured()) {
    for (json& inner : value) MakePlain(inner);
  }
}

void Cut(json& list, size_t most) {
  if (list.size() > most) list.erase(list.begin() + static_cast<std::ptrdiff_t>(most), list.end());
}

// Findings as `deja check --json` has them, with ranks in words.
json Verdict(const ReportSource& source, const check::Job& job, check::Report report) {
  const size_t all = report.findings.size();
  if (all > kMostFindings) report.findings.resize(kMostFindings);
  json verdict = CheckJson(report, {source.trace, job.ranks.size()});
  verdict["total"] = all;
  for (size_t i = 0; i < report.findings.size(); ++i) {
    const check::Finding& finding = report.findings[i];
    json& shown = verdict["findings"][i];
    shown["ranks"] = check::RangesText(finding.blamed);
    shown["others"] = check::RangesText(finding.waiting);
    shown.erase("members");
    for (size_t s = 0; s < finding.sides.size(); ++s)
      shown["sides"][s]["ranks"] = check::RangesText(finding.sides[s].ranks);
    if (finding.agreed) shown["agreed"]["ranks"] = check::RangesText(finding.agreed->ranks);
    Cut(shown["sides"], kMostListed);
    Cut(shown["evidence"], kMostListed);
    Cut(shown["consequences"], kMostListed);
  }
  Cut(verdict["notes"], kMostListed);
  return verdict;
}

uint64_t OriginOf(const check::Job& job, const std::vector<check::JoinedOperation>& operations,
                  const std::vector<RankFacts>& ranks) {
  uint64_t origin = operations.empty() ? job.last_time_ns : operations.front().begin_ns;
  for (const RankFacts& rank : ranks)
    if (!rank.steps.empty()) origin = std::min(origin, rank.steps.front().second);
  return origin;
}

int64_t Microseconds(uint64_t time_ns, uint64_t origin_ns) {
  return (static_cast<int64_t>(time_ns) - static_cast<int64_t>(origin_ns)) / 1000;
}

json RankTable(const check::Job& job, const std::vector<RankFacts>& ranks,
               const std::vector<check::RankWaits>& waits, uint64_t origin_ns) {
  json rows = json::array();
  for (size_t r = 0; r < job.ranks.size() && r < kMostRanks; ++r) {
    const check::RankSummary& rank = job.ranks[r];
    const RankFacts& facts = ranks[r];
    rows.push_back({{"rank", rank.rank},
                    {"host", facts.host},
                    {"pid", facts.pid},
                    {"end", rank.end.Describe()},
                    {"well", rank.end.Well()},
                    {"ended", Microseconds(rank.last_time_ns, origin_ns)},
                    {"last", rank.last_call + job.AtSite(rank.last_site)},
                    {"partial", rank.unknown},
                    {"events", facts.events},
                    {"lost", facts.events_lost + facts.payloads_lost},
                    {"bytes", facts.file_bytes},
                    {"operations", waits[r].operations},
                    {"inside", waits[r].inside_ns / 1000},
                    {"waited", waits[r].waited_ns / 1000},
                    {"kept", waits[r].kept_ns / 1000},
                    {"last_times", waits[r].times_last}});
  }
  return rows;
}

json Steps(const std::vector<RankFacts>& ranks, uint64_t origin_ns) {
  const std::vector<JobStep> steps = StepsOf(ranks);
  json rows = json::array();
  const size_t first = steps.size() > kMostSteps ? steps.size() - kMostSteps : 0;
  for (size_t i = first; i < steps.size(); ++i)
    rows.push_back({steps[i].step, Microseconds(steps[i].first_ns, origin_ns),
                    Microseconds(steps[i].last_ns, origin_ns), steps[i].last_rank, steps[i].ranks});
  return {{"total", steps.size()}, {"rows", rows}};
}

// How many ranks' operations had a NaN or an infinity, by step.
json BadNumbers(const check::Job& job) {
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> by_step;
  bool has_steps = true;
  for (const check::RankSummary& rank : job.ranks) {
    for (const check::CommSummary& comm : rank.comms) {
      const auto count = [&](const check::Call& call) {
        if (call.step == check::kNoStep) has_steps = false;
        auto& [nans, infinities] = by_step[call.step == check::kNoStep ? call.seq : call.step];
        nans += (call.flags & (check::kNanIn | check::kNanOut)) != 0 ? 1 : 0;
        infinities += (call.flags & (check::kInfIn | check::kInfOut)) != 0 ? 1 : 0;
      };
      std::for_each(comm.collectives.begin(), comm.collectives.end(), count);
      std::for_each(comm.transfers.begin(), comm.transfers.end(), count);
    }
  }
  json nans = json::array();
  json infinities = json::array();
  uint64_t all_nans = 0;
  uint64_t all_infinities = 0;
  const size_t stride = std::max<size_t>(1, by_step.size() / kMostSteps);
  size_t index = 0;
  for (const auto& [step, counts] : by_step) {
    all_nans += counts.first;
    all_infinities += counts.second;
    if (index++ % stride != 0 && counts.first + counts.second == 0) continue;
    if (nans.size() >= 2 * kMostSteps) continue;
    nans.push_back({step, counts.first});
    infinities.push_back({step, counts.second});
  }
  if (all_nans == 0) nans.clear();
  if (all_infinities == 0) infinities.clear();
  return {{"steps", has_steps}, {"nans", nans}, {"infinities", infinities}};
}

json Series(const std::vector<NumberSeries>& series) {
  json all = json::array();
  for (const NumberSeries& one : series) {
    json points = json::array();
    for (const NumberPoint& point : one.points) {
      // JSON has no NaN: page.js takes null for one.
      const bool is_number = !point.is_nan && std::isfinite(point.value);
      points.push_back({point.x, is_number ? json(point.value) : json()});
    }
    all.push_back({{"title", one.title},
                   {"scalar", one.is_scalar},
                   {"steps", one.has_steps},
                   {"points", points}});
  }
  return all;
}

json Differences(const check::Job& job) {
  json rows = json::array();
  for (const SurroundingsDifference& difference : DifferencesOf(job)) {
    json values = json::array();
    for (const ValueOfRanks& one : difference.values)
      values.push_back({{"value", one.value}, {"ranks", check::RangesText(one.ranks)}});
    Cut(values, kMostListed);
    rows.push_back({{"name", difference.name}, {"values", values}});
  }
  const size_t total = rows.size();
  Cut(rows, kMostListed);
  return {{"total", total}, {"rows", rows}};
}

json FactRows(const ReportSource& source, const check::Job& job,
              const std::vector<RankFacts>& ranks) {
  json rows = json::array({{"trace", source.trace}});
  for (const JobFact& fact : source.facts) rows.push_back({fact.name, fact.value});
  uint32_t world = 0;
  uint64_t bytes = 0;
  uint64_t events = 0;
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  std::set<std::string> hosts;
  for (const check::RankSummary& rank : job.ranks) world = std::max(world, rank.world_size);
  for (const RankFacts& rank : ranks) {
    bytes += rank.file_bytes;
    events += rank.events;
    payloads += rank.payloads;
    payload_bytes += rank.payload_bytes;
    hosts.insert(rank.host);
  }
  rows.push_back({"ranks", fmt::format("{} of {}, level {}", job.ranks.size(), world,
                                       LevelName(ranks.front().level))});
  rows.push_back({"hosts", fmt::format("{}", hosts.size())});
  rows.push_back({"events", HumanCount(events)});
  rows.push_back(
      {"payloads", fmt::format("{}, {}", HumanCount(payloads), HumanBytes(payload_bytes))});
  rows.push_back({"on disk", HumanBytes(bytes)});
  return rows;
}

json PackageRows(const ReportSource& source) {
  json rows = json::array();
  for (const auto& [folder, packages] : source.packages)
    for (const auto& [name, version] : packages) rows.push_back({name, version});
  Cut(rows, kMostPackages);
  return rows;
}

// The rank to replay: the first finding's, or the first that an exception of Python's ended.
const check::RankSummary& RankToReplay(const check::Report& report, const check::Job& job) {
  const auto first = [&](auto is_one) {
    const auto found = std::find_if(job.ranks.begin(), job.ranks.end(), is_one);
    return found == job.ranks.end() ? nullptr : &*found;
  };
  const check::RankSummary* chosen = nullptr;
  if (!report.findings.empty() && !report.findings.front().blamed.empty())
    chosen = first([&](const check::RankSummary& rank) {
      return rank.rank == report.findings.front().blamed.front();
    });
  if (chosen == nullptr)
    chosen = first([](const check::RankSummary& rank) { return !rank.end.exception.empty(); });
  return chosen == nullptr ? job.ranks.front() : *chosen;
}

json ReplayCommands(const check::Report& report, const check::Job& job, const json& verdict) {
  const check::RankSummary& rank = RankToReplay(report, job);
  const std::string replay = fmt::format("deja replay RUN --rank {}", rank.rank);
  json commands = json::array();
  commands.push_back({replay, "run this rank again, without the others"});
  if (!rank.end.exception.empty())
    commands.push_back({replay + " --pdb", "the same in pdb, at the exception that ended it"});
  commands.push_back({replay + " --gdb", "the same in a debugger"});
  commands.push_back({"deja check RUN", "the findings, as text"});
  commands.push_back({"deja info RUN", "each rank, its end and its sizes"});
  if (!verdict["findings"].empty())
    for (const json& next : verdict["findings"][0]["next"])
      commands.push_back({next, "from the first finding"});
  return commands;
}

}  // namespace

nlohmann::json ReportData(const ReportSource& source, const check::Job& job,
                          const check::Report& report, const TimelineLimits& limits) {
  std::vector<RankFacts> ranks;
  for (const check::RankSummary& rank : job.ranks) {
    const auto found = source.ranks.find(rank.rank);
    ranks.push_back(found == source.ranks.end() ? RankFacts{} : found->second);
  }
  const std::vector<check::JoinedOperation> operations = check::JoinOperations(job);
  const uint64_t origin_ns = OriginOf(job, operations, ranks);
  json verdict = Verdict(source, job, report);
  json data = {
      {"made_by", source.made_by},
      {"trace", source.trace},
      {"origin", WallTime(origin_ns)},
      {"replay", ReplayCommands(report, job, verdict)},
      {"verdict", std::move(verdict)},
      {"facts", FactRows(source, job, ranks)},
      {"ranks", RankTable(job, ranks, check::WaitsOf(job, operations), origin_ns)},
      {"rank_count", job.ranks.size()},
      {"steps", Steps(ranks, origin_ns)},
      {"bad_numbers", BadNumbers(job)},
      {"series_rank", source.series_rank},
      {"series", Series(source.series)},
      {"differences", Differences(job)},
      {"packages", PackageRows(source)},
  };
  MakePlain(data);
  // Base64 is longer than other strings.
  json timeline = TimelineData(job, operations, report, origin_ns, limits);
  for (const char* texts : {"comms", "signatures", "sites"}) MakePlain(timeline[texts]);
  data["timeline"] = std::move(timeline);
  return data;
}

}  // namespace deja::cli
