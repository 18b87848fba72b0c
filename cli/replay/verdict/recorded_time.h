// NotLaterThan: when, by the recording's clock, something happened of which a replay knows the
// operation or the step.
//
// Reads events; any thread.
#ifndef DEJA_CLI_REPLAY_VERDICT_RECORDED_TIME_H_
#define DEJA_CLI_REPLAY_VERDICT_RECORDED_TIME_H_

#include <cstdint>
#include <optional>

#include "cli/replay/report/replay_report.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct RecordedPlace {
  std::optional<uint64_t> step;  // none: before the first
  std::optional<uint32_t> comm;  // number of the communicator
  uint64_t comm_seq = 0;         // of the operation on it; 0: none
};

RecordedPlace PlaceOf(const DivergenceLine& divergence);

// The recorded time at which the operation was entered or, without one, the step was over.
// Nothing: the recording does not have it.
std::optional<uint64_t> NotLaterThan(const format::RankReader& reader, const RecordedPlace& place);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_VERDICT_RECORDED_TIME_H_
