// Where a replay shall end: looked for in the recording, before the program is started.
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_BOUNDS_STOP_CONDITION_H_
#define DEJA_CLI_REPLAY_BOUNDS_STOP_CONDITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

// What the user asked for.
struct UntilOptions {
  std::optional<uint64_t> step;
  std::optional<uint64_t> seq;
  std::optional<uint32_t> comm;  // of seq; none: the communicator that reaches it first

  [[nodiscard]] bool any() const { return step || seq; }
};

// What it is on one rank.
struct ReplayUntil {
  std::vector<std::string> environment;  // for the replay library
  std::string gdb_command;
  // A checkpoint of this step or an earlier one comes before it; nothing: none does.
  std::optional<uint64_t> from_step;
  uint64_t time_ns = 0;  // when the recording came there
};

// An error if the rank does not come there.
Result<ReplayUntil> FindUntil(const format::RankReader& reader, const UntilOptions& options);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_BOUNDS_STOP_CONDITION_H_
