// Where a replay of several ranks starts and ends: at checkpoints and places that all of them have.
//
// Pure functions but for lines on stderr that say where it starts; main thread only.
#ifndef DEJA_CLI_REPLAY_BOUNDS_REPLAY_BOUNDS_H_
#define DEJA_CLI_REPLAY_BOUNDS_REPLAY_BOUNDS_H_

#include <cstdint>
#include <vector>

#include "cli/replay/bounds/checkpoint_choice.h"
#include "cli/replay/bounds/replay_arguments.h"
#include "cli/replay/bounds/stop_condition.h"
#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

// Where each rank shall end; nothing if they shall go on.
Result<std::vector<ReplayUntil>> FindEnds(const ReplayArguments& arguments, format::Trace& trace,
                                          const std::vector<uint32_t>& ranks);

// Without a checkpoint the replay starts at the start, with the same result in more time.
Result<SoundStart> ChooseStart(const ReplayArguments& arguments, format::Trace& trace,
                               const std::vector<uint32_t>& ranks,
                               const std::vector<ReplayUntil>& ends);

// Error: the trace is a reduced copy and lacks what a replay from its start needs.
Status CheckStart(const ReplayArguments& arguments, format::Trace& trace,
                  const std::vector<uint32_t>& ranks, const std::vector<ReplayUntil>& ends);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_BOUNDS_REPLAY_BOUNDS_H_
