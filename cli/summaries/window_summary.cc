#include "cli/summaries/window_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/output.h"
#include "format/trace/payload_uses.h"

namespace deja::cli {
namespace {

std::string StepsText(const std::pair<uint64_t, uint64_t>& steps) {
  return steps.first == steps.second ? fmt::format("{}", steps.first)
                                     : fmt::format("{} to {}", steps.first, steps.second);
}

// Whether part of the step that begins with Step{name} went with an older segment. The rank had not
// reached the end of the step when another one began the next segment, or the step was too large
// for one.
bool IsPartlyDropped(const format::RankReader& reader, uint64_t name) {
  struct Reference {
    uint64_t time_ns;
    format::PayloadReference payload;
  };
  std::vector<Reference> references;
  std::optional<uint64_t> begin;
  uint64_t end = ~uint64_t{0};
  size_t last_batch = ~size_t{0};
  const auto cursor = reader.EventsFromStep(name);
  while (const format::Event* event = cursor->Next()) {
    if (cursor->batch_number() > last_batch) break;
    if (const auto* step = event->As<format::Step>(); step != nullptr && !begin) {
      if (step->step == name) begin = event->time_ns;
    } else if (step != nullptr && end == ~uint64_t{0} && event->time_ns >= *begin) {
      end = event->time_ns;
      last_batch = cursor->batch_number();  // within one, events stand thread by thread
    }
    format::ForEachPayload(*event, [&](const format::PayloadReference& payload) {
      references.push_back({event->time_ns, payload});
    });
  }
  return begin && std::any_of(references.begin(), references.end(), [&](const Reference& one) {
           return *begin <= one.time_ns && one.time_ns < end &&
                  reader.Dropped(one.payload.segment) && !reader.PayloadSize(one.payload.hash);
         });
}

}  // namespace

WindowSummary ReadWindowSummary(const format::RankReader& reader) {
  const format::Footer& totals = reader.totals();
  WindowSummary summary;
  summary.keeps_any = totals.payloads != 0 || totals.partial_payloads != 0;
  summary.payloads_dropped = totals.payloads_dropped;
  summary.payload_bytes_dropped = totals.payload_bytes_dropped;
  // The n-th step and what the program calls it.
  std::vector<uint64_t> names;
  for (const format::BatchInfo& batch : reader.batches())
    names.insert(names.end(), batch.steps.begin(), batch.steps.end());
  uint64_t previous = 0;
  for (const format::Segment& segment : totals.segments) {
    summary.marked_segments += segment.marked;
    if (segment.payloads == 0) continue;
    summary.keeps_start = summary.keeps_start || segment.first_step == 0;
    uint64_t first = std::max<uint64_t>(segment.first_step, 1);
    const uint64_t last = std::min<uint64_t>(segment.last_step, names.size());
    const bool continues = !summary.kept_steps.empty() && first <= previous + 1;
    if (first <= last && !continues && summary.drops() && IsPartlyDropped(reader, names[first - 1]))
      ++first;
    if (last < first) continue;
    if (continues) {
      summary.kept_steps.back().second = names[last - 1];
    } else {
      summary.kept_steps.emplace_back(names[first - 1], names[last - 1]);
    }
    previous = last;
  }
  return summary;
}

std::string WindowSummary::Describe() const {
  std::string kept;
  for (const auto& steps : kept_steps) kept += (kept.empty() ? "" : ", ") + StepsText(steps);
  const bool one = kept_steps.size() == 1 && kept_steps[0].first == kept_steps[0].second;
  std::string text =
      kept.empty() ? std::string(keeps_any ? "the last payloads are kept" : "no payload is kept")
                   : fmt::format("the payloads of step{} {} are kept", one ? "" : "s", kept);
  if (keeps_start) text += ", and those before the first step";
  return text + fmt::format("; {} older ones ({}) were dropped", HumanCount(payloads_dropped),
                            HumanBytes(payload_bytes_dropped));
}

nlohmann::json ToJson(const WindowSummary& summary) {
  nlohmann::json steps = nlohmann::json::array();
  for (const auto& [first, last] : summary.kept_steps) steps.push_back({first, last});
  return {{"kept_steps", steps},
          {"keeps_start", summary.keeps_start},
          {"payloads_dropped", summary.payloads_dropped},
          {"payload_bytes_dropped", summary.payload_bytes_dropped},
          {"marked_segments", summary.marked_segments}};
}

std::string DescribePressure(const format::Pressure& pressure) {
  if (pressure.buffer_bytes == 0) return "";
  std::string text = fmt::format("buffer {}, at most {} in use", HumanBytes(pressure.buffer_bytes),
                                 HumanBytes(pressure.peak_bytes));
  if (pressure.waits != 0)
    text += fmt::format("; the program waited for room {} times, {} in all",
                        HumanCount(pressure.waits), HumanDuration(pressure.waited_ns));
  if (pressure.payloads != 0)
    text += fmt::format("; {} payloads ({}) not kept for lack of room",
                        HumanCount(pressure.payloads), HumanBytes(pressure.payload_bytes));
  return text;
}

nlohmann::json ToJson(const format::Pressure& pressure) {
  return {{"buffer_bytes", pressure.buffer_bytes},
          {"peak_bytes", pressure.peak_bytes},
          {"waits", pressure.waits},
          {"waited_ns", pressure.waited_ns},
          {"payloads", pressure.payloads},
          {"payload_bytes", pressure.payload_bytes}};
}

}  // namespace deja::cli
