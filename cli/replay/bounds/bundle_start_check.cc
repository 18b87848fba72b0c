#include "cli/replay/bounds/bundle_start_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/open_trace.h"
#include "cli/replay/bounds/checkpoint_choice.h"
#include "common/ids.h"
#include "format/trace/payload_uses.h"

namespace deja::cli {
namespace {

using format::EventKind;
using format::KindBit;

constexpr uint64_t kLast = ~uint64_t{0};

// As --steps takes them.
std::string Range(std::optional<uint64_t> first, uint64_t last) {
  return fmt::format("{}-{}", first ? std::to_string(*first) : "",
                     last == kLast ? "" : std::to_string(last));
}

std::string StepsText(const std::vector<ReplayStart>& starts) {
  constexpr size_t kMost = 8;
  std::string text = starts.size() == 1 ? "step " : "steps ";
  for (size_t i = 0; i < std::min(starts.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(starts[i].step);
  return text + (starts.size() > kMost ? ", …" : "");
}

}  // namespace

std::optional<LeftOutStart> FindLeftOutStart(const format::RankReader& reader) {
  if (reader.left_out().payloads == 0 || reader.totals().steps == 0 ||
      reader.header().level != static_cast<uint32_t>(Level::kFull))
    return std::nullopt;
  struct Reference {
    uint64_t time_ns;
    format::PayloadReference payload;
  };
  std::vector<Reference> references;
  std::map<uint64_t, uint64_t> steps;  // by when they begin
  size_t last_batch = ~size_t{0};
  const auto cursor = reader.EventsFromStep(reader.totals().first_step);
  constexpr uint64_t kKinds = KindBit(EventKind::kStep) | KindBit(EventKind::kCallResults);
  while (const format::Event* event = cursor->NextOf(kKinds)) {
    if (cursor->batch_number() > last_batch) break;
    if (const auto* step = event->As<format::Step>()) steps[event->time_ns] = step->step;
    format::ForEachPayload(*event, [&](const format::PayloadReference& payload) {
      references.push_back({event->time_ns, payload});
      // Within a batch events stand thread by thread, and a thread may have come later.
      last_batch = std::min(last_batch, cursor->batch_number() + 1);
    });
  }
  std::sort(references.begin(), references.end(),
            [](const Reference& a, const Reference& b) { return a.time_ns < b.time_ns; });
  const auto first = std::find_if(references.begin(), references.end(), [&](const Reference& one) {
    return !steps.empty() && one.time_ns >= steps.begin()->first;
  });
  if (first == references.end()) return std::nullopt;
  const auto next = steps.upper_bound(first->time_ns);
  const uint64_t end = next == steps.end() ? kLast : next->first;
  const bool missing = std::any_of(first, references.end(), [&](const Reference& one) {
    return one.time_ns < end && !reader.PayloadSize(one.payload.hash) &&
           !reader.Dropped(one.payload.segment);
  });
  if (!missing) return std::nullopt;
  LeftOutStart start;
  start.step = std::prev(next)->second;
  start.time_ns = first->time_ns;
  start.what = reader.left_out().what;
  return start;
}

Error CannotStart(format::Trace& trace, uint32_t rank, int attempt, const LeftOutStart& start) {
  std::string why;
  const auto starts = ReplayStarts(trace, kLast, attempt, {rank}, why);
  std::string text =
      fmt::format("replaying: rank {}: the data that it received in step {} is not in {} ({})",
                  rank, start.step, trace.path(), start.what);
  if (starts && !starts->empty())
    text += fmt::format("; start at one of its checkpoints ({}): --from-step {}",
                        StepsText(*starts), starts->back().step);
  else
    text +=
        ", and it holds no checkpoint; pack the trace again with the checkpoint before these steps "
        "(`deja info` lists them; --steps CHECKPOINT-LAST), or from the first step on (--steps "
        "-LAST)";
  return {ErrorCode::kNotFound, text};
}

Result<PackStart> HowAPackStarts(format::Trace& trace, std::pair<uint64_t, uint64_t> steps,
                                 std::vector<uint32_t> ranks) {
  if (ranks.empty()) ranks = RankNumbers(trace);
  const uint64_t first = steps.first;
  const uint64_t last = steps.second;
  uint64_t first_of_all = kLast;
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank));
    if (reader->totals().steps != 0)
      first_of_all = std::min(first_of_all, reader->totals().first_step);
  }
  if (first_of_all == kLast || first <= first_of_all) return PackStart();
  std::string why;
  DEJA_ASSIGN_OR_RETURN(const auto starts, ReplayStarts(trace, last, -1, ranks, why));
  const auto inside = std::partition_point(starts.begin(), starts.end(),
                                           [&](const auto& one) { return one.step < first; });
  if (inside != starts.end() && inside->step == first)
    return PackStart{
        fmt::format("replays of it start at the checkpoint of step {0}: --from-step {0}", first)};
  const std::string more =
      inside == starts.begin()
          ? fmt::format("from the first step on, as there is no checkpoint before: {}",
                        last == kLast ? "without --steps" : "--steps " + Range(std::nullopt, last))
          : fmt::format("the checkpoint before, too: --steps {}",
                        Range(std::prev(inside)->step, last));
  if (inside == starts.end())
    return PackStart{
        fmt::format("it cannot be replayed: these steps hold no checkpoint, and data from before "
                    "them is left out; pack {}",
                    more),
        false};
  return PackStart{
      fmt::format("replays of it start at the checkpoint of step {0}: --from-step {0}; for the "
                  "steps before pack {1}",
                  inside->step, more)};
}

Result<PackStart> HowABundleStarts(format::Trace& bundle) {
  std::optional<uint32_t> rank;
  for (const uint32_t one : RankNumbers(bundle)) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, bundle.Rank(one));
    if (!FindLeftOutStart(*reader)) return PackStart();
    std::string why;
    DEJA_ASSIGN_OR_RETURN(const auto starts, ReplayStarts(bundle, kLast, -1, {one}, why));
    if (!starts.empty())
      return PackStart{
          fmt::format("replays of rank {} start at one of its checkpoints ({}): --from-step {}",
                      one, StepsText(starts), starts.back().step)};
    rank = one;
  }
  if (!rank) return PackStart();
  return PackStart{
      "it cannot be replayed: data of the first steps is left out, and it holds no checkpoint; "
      "allow more, or record with --checkpoint-every",
      false};
}

}  // namespace deja::cli
