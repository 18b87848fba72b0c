#include "cli/replay/bounds/checkpoint_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/open_trace.h"
#include "format/reader/checkpoints.h"

namespace deja::cli {
namespace {

// `replayed`: the ranks that shall be, or none for all.
bool IsUsable(const format::RecordedCheckpoint& checkpoint, const format::RankReader& reader,
              const std::vector<uint32_t>& replayed) {
  const bool is_replayed = replayed.empty() || std::find(replayed.begin(), replayed.end(),
                                                         reader.header().rank) != replayed.end();
  return checkpoint.complete() || (!is_replayed && reader.left_out().payloads != 0);
}

// One rank's checkpoints that can be used, from a step backwards.
struct RankCheckpoints {
  uint32_t rank = 0;
  const format::RankReader& reader;
  const std::vector<uint32_t>& replayed;
  format::CheckpointsBackwards backwards;
  std::optional<format::RecordedCheckpoint> at;

  // Goes back to the last one at or before `step`. False: there is none.
  bool GoTo(uint64_t step) {
    while (!at || at->step > step || !IsUsable(*at, reader, replayed)) {
      at = backwards.Next();
      if (!at) return false;
    }
    return true;
  }
};

// The latest start at or before `step`, looked for from there backwards so that it takes no longer
// where more lies before. Nothing: there is none, or steps do not go up.
Result<std::optional<ReplayStart>> FromTheEnd(format::Trace& trace, uint64_t step, int attempt,
                                              const std::vector<uint32_t>& replayed) {
  std::vector<RankCheckpoints> ranks;
  for (const format::RankFolder& folder : trace.ranks()) {
    if (!ranks.empty() && ranks.back().rank == folder.rank) continue;  // another attempt
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(folder.rank, attempt));
    const std::optional<size_t> batches = format::BatchesUpToStep(*reader, step);
    if (!batches) return std::nullopt;
    ranks.push_back({folder.rank, *reader, replayed, {*reader, *batches}, std::nullopt});
  }
  for (bool all_there = false; !all_there;) {
    all_there = true;
    for (RankCheckpoints& one : ranks) {
      if (!one.GoTo(step)) return std::nullopt;
      all_there &= one.at->step == step || &one == ranks.data();
      step = one.at->step;
    }
  }
  ReplayStart start{step, {}};
  for (const RankCheckpoints& one : ranks) start.numbers[one.rank] = one.at->number;
  return start;
}

}  // namespace

Result<std::vector<ReplayStart>> ReplayStarts(format::Trace& trace, uint64_t step, int attempt,
                                              const std::vector<uint32_t>& replayed,
                                              std::string& why) {
  const std::vector<uint32_t> ranks = RankNumbers(trace);
  std::map<uint64_t, std::map<uint32_t, uint64_t>> by_step;  // numbers by rank
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
    uint64_t complete = 0;
    std::string incomplete;
    for (const format::RecordedCheckpoint& checkpoint : format::ReadCheckpoints(*reader)) {
      if (checkpoint.step > step) continue;
      if (IsUsable(checkpoint, *reader, replayed)) {
        by_step[checkpoint.step][rank] = checkpoint.number;
        ++complete;
      } else {
        incomplete = fmt::format("; of its checkpoint at step {}, {}", checkpoint.step,
                                 checkpoint.incomplete);
      }
    }
    if (complete == 0 && why.empty())
      why =
          fmt::format("rank {} has no complete checkpoint up to step {}{}", rank, step, incomplete);
  }
  std::vector<ReplayStart> starts;
  for (const auto& [at, numbers] : by_step)
    if (numbers.size() == ranks.size()) starts.push_back({at, numbers});
  if (starts.empty() && why.empty())
    why = fmt::format("the ranks have no checkpoint in common up to step {}", step);
  return starts;
}

Result<std::optional<ReplayStart>> FindReplayStart(format::Trace& trace, uint64_t step, int attempt,
                                                   const std::vector<uint32_t>& ranks,
                                                   std::string& why) {
  DEJA_ASSIGN_OR_RETURN(const std::optional<ReplayStart> late,
                        FromTheEnd(trace, step, attempt, ranks));
  if (late) return late;
  DEJA_ASSIGN_OR_RETURN(const std::vector<ReplayStart> starts,
                        ReplayStarts(trace, step, attempt, ranks, why));
  if (starts.empty()) return std::nullopt;
  return starts.back();
}

Result<std::string> FindDamage(format::Trace& trace, const ReplayStart& start,
                               const std::vector<uint32_t>& ranks, int attempt) {
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
    const auto checkpoint = format::FindCheckpoint(*reader, start.numbers.at(rank));
    if (!checkpoint) return fmt::format("its events on rank {} cannot be read", rank);
    for (const format::CheckpointItem& item : checkpoint->items) {
      if (item.tensor.count == 0) continue;
      const Status read =
          reader->StreamPayload(item.tensor.hash, [](std::span<const std::byte>) {});
      if (!read)
        return fmt::format("the bytes of '{}' on rank {} cannot be read: {}", item.name, rank,
                           read.error().message);
    }
  }
  return std::string();
}

std::string DamagedCheckpoint::Text() const {
  return fmt::format("the checkpoint at step {} is damaged and is not used: {}", step, what);
}

Result<SoundStart> FindSoundStart(format::Trace& trace, uint64_t step,
                                  const std::vector<uint32_t>& ranks, int attempt,
                                  std::string& why) {
  SoundStart found;
  DEJA_ASSIGN_OR_RETURN(found.start, FindReplayStart(trace, step, attempt, ranks, why));
  while (found.start) {
    DEJA_ASSIGN_OR_RETURN(std::string damage, FindDamage(trace, *found.start, ranks, attempt));
    if (damage.empty()) break;
    const uint64_t damaged = found.start->step;
    found.damaged.push_back({damaged, std::move(damage)});
    why = fmt::format("there is no whole checkpoint before step {}", damaged);
    found.start.reset();
    if (damaged == 0) break;
    std::string ignored;
    DEJA_ASSIGN_OR_RETURN(found.start,
                          FindReplayStart(trace, damaged - 1, attempt, ranks, ignored));
  }
  return found;
}

}  // namespace deja::cli
