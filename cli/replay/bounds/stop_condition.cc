#include "cli/replay/bounds/stop_condition.h"

#include <fmt/format.h>

#include <set>

#include "cli/own_variables.h"
#include "format/reader/checkpoints.h"

namespace deja::cli {
namespace {

using format::EventKind;
using format::KindBit;

// When it began.
std::optional<uint64_t> TimeOfStep(const format::RankReader& reader, uint64_t step) {
  const auto cursor = reader.EventsFromStep(step);
  while (const format::Event* event = cursor->NextOf(KindBit(EventKind::kStep)))
    if (event->As<format::Step>()->step == step) return event->time_ns;
  return std::nullopt;
}

std::set<uint32_t> Comms(const format::RankReader& reader) {
  constexpr uint64_t kCreated = KindBit(EventKind::kCommCreated);
  std::set<uint32_t> comms;
  const format::BatchList& batches = reader.batches();
  const size_t end = batches.size();
  for (size_t batch = 0; (batch = batches.FindKinds(batch, end, kCreated)) < end; ++batch) {
    const auto cursor = reader.EventsOfBatch(batch);
    while (const format::Event* event = cursor->NextOf(kCreated))
      comms.insert(event->As<format::CommCreated>()->comm);
  }
  comms.erase(0);
  return comms;
}

struct FoundOperation {
  format::EventHead at;
  size_t batch = 0;
};

// `comm`: + 1.
std::optional<FoundOperation> FindOperation(const format::RankReader& reader, uint32_t comm,
                                            uint64_t seq) {
  const auto cursor = reader.EventsFromOp(comm, seq);
  while (const format::Event* event = cursor->NextOf(KindBit(EventKind::kCallEnter))) {
    const auto* enter = event->As<format::CallEnter>();
    if (enter->comm == comm && enter->comm_seq == seq)
      return FoundOperation{*event, cursor->batch_number()};
  }
  return std::nullopt;
}

Result<ReplayUntil> FindStep(const format::RankReader& reader, uint64_t step) {
  const auto time_ns = TimeOfStep(reader, step);
  if (!time_ns)
    return Fail(ErrorCode::kNotFound,
                fmt::format("replaying: rank {}: it did not reach step {}; `deja info` shows its "
                            "last step",
                            reader.header().rank, step));
  return ReplayUntil{
      {Entry(env::kUntilStep, step + 1)}, fmt::format("deja goto step {}", step), step, *time_ns};
}

Result<ReplayUntil> FindSeq(const format::RankReader& reader, uint64_t seq,
                            std::optional<uint32_t> wanted) {
  const std::set<uint32_t> comms = wanted ? std::set<uint32_t>{*wanted + 1} : Comms(reader);
  uint32_t found = 0;
  FoundOperation first;
  for (const uint32_t comm : comms) {
    const auto at = FindOperation(reader, comm, seq);
    if (!at || (found != 0 && first.at.time_ns <= at->at.time_ns)) continue;
    found = comm;
    first = *at;
  }
  if (found == 0)
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("replaying: rank {}: it did not reach operation {}{}; `deja show --rank "
                    "{} --last 10` shows its last ones",
                    reader.header().rank, seq,
                    wanted ? fmt::format(" of communicator {}", *wanted) : std::string(),
                    reader.header().rank));
  ReplayUntil until;
  until.time_ns = first.at.time_ns;
  until.environment = {Entry(env::kUntilComm, found), Entry(env::kUntilSeq, seq)};
  until.gdb_command = fmt::format("deja goto seq {} comm {}", seq, found - 1);
  // A thread that is ahead of the others may have its batch before theirs.
  constexpr size_t kBatchesBehind = 4;
  format::CheckpointsBackwards backwards(reader, first.batch + kBatchesBehind);
  while (const auto checkpoint = backwards.Next()) {
    if (!checkpoint->complete() ||
        !checkpoint->IsBehind(first.at.thread, first.at.seq, first.at.time_ns))
      continue;
    until.from_step = checkpoint->step;
    break;
  }
  return until;
}

}  // namespace

Result<ReplayUntil> FindUntil(const format::RankReader& reader, const UntilOptions& options) {
  return options.step ? FindStep(reader, *options.step)
                      : FindSeq(reader, options.seq.value_or(0), options.comm);
}

}  // namespace deja::cli
