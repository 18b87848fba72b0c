#include "cli/summaries/rank_facts.h"

#include <algorithm>
#include <map>
#include <set>

namespace deja::cli {

RankFacts ReadRankHead(const format::RankReader& reader) {
  const format::TraceHeader& header = reader.header();
  const format::Footer& totals = reader.totals();
  RankFacts facts;
  facts.host = std::string(header.process.hostname);
  facts.pid = header.process.pid;
  facts.level = header.level;
  facts.events = totals.events;
  facts.payloads = totals.payloads;
  facts.payload_bytes = totals.payload_bytes;
  facts.file_bytes = reader.file_bytes();
  facts.events_lost = totals.events_lost;
  facts.payloads_lost = totals.payloads_lost;
  facts.start_ns = header.start_wall_ns;
  return facts;
}

RankFacts ReadRankFacts(const format::RankReader& reader) {
  const format::TraceHeader& header = reader.header();
  RankFacts facts = ReadRankHead(reader);
  const uint64_t to_wall = header.start_wall_ns - header.start_mono_ns;
  auto cursor = reader.Events();
  while (const format::Event* event = cursor->NextOf(format::KindBit(format::EventKind::kStep)))
    facts.steps.emplace_back(event->As<format::Step>()->step, event->time_ns + to_wall);
  return facts;
}

std::vector<JobStep> StepsOf(const std::vector<RankFacts>& ranks) {
  std::map<uint64_t, JobStep> steps;
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::set<uint64_t> seen;
    for (const auto& [number, time_ns] : ranks[r].steps) {
      if (!seen.insert(number).second) continue;
      JobStep& step = steps[number];
      if (step.ranks++ == 0) step = {number, time_ns, time_ns, r, 1};
      step.first_ns = std::min(step.first_ns, time_ns);
      if (time_ns > step.last_ns) {
        step.last_ns = time_ns;
        step.last_rank = r;
      }
    }
  }
  std::vector<JobStep> sorted;
  sorted.reserve(steps.size());
  for (const auto& [number, step] : steps) sorted.push_back(step);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const JobStep& a, const JobStep& b) { return a.first_ns < b.first_ns; });
  return sorted;
}

}  // namespace deja::cli
