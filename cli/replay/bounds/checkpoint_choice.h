// From where a replay starts: the checkpoint that all ranks have.
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_BOUNDS_CHECKPOINT_CHOICE_H_
#define DEJA_CLI_REPLAY_BOUNDS_CHECKPOINT_CHOICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

struct ReplayStart {
  uint64_t step = 0;
  std::map<uint32_t, uint64_t> numbers;  // of the checkpoint, by rank
};

// The checkpoints at or before `step` that are complete on all ranks of the trace, in their order;
// if there are none, `why` says what there is. `attempt`: of each rank; -1: the last. `ranks`:
// those that are to be replayed; of others it does not matter what a smaller copy of the trace has
// left out. Empty: all.
Result<std::vector<ReplayStart>> ReplayStarts(format::Trace& trace, uint64_t step, int attempt,
                                              const std::vector<uint32_t>& ranks, std::string& why);

// The latest of them; nothing if there is none.
Result<std::optional<ReplayStart>> FindReplayStart(format::Trace& trace, uint64_t step, int attempt,
                                                   const std::vector<uint32_t>& ranks,
                                                   std::string& why);

// What of the start's checkpoint on these ranks cannot be read, with the object's name; empty:
// all of it can. Reads the checkpoint's bytes.
Result<std::string> FindDamage(format::Trace& trace, const ReplayStart& start,
                               const std::vector<uint32_t>& ranks, int attempt);

// A checkpoint that cannot be used: of which step, and what of it cannot be read.
struct DamagedCheckpoint {
  uint64_t step = 0;
  std::string what;
  [[nodiscard]] std::string Text() const;
};

struct SoundStart {
  std::optional<ReplayStart> start;
  std::vector<DamagedCheckpoint> damaged;  // later ones than `start`, in the order of the search
};

// As FindReplayStart, of those whose bytes can be read on `ranks`.
Result<SoundStart> FindSoundStart(format::Trace& trace, uint64_t step,
                                  const std::vector<uint32_t>& ranks, int attempt,
                                  std::string& why);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_BOUNDS_CHECKPOINT_CHOICE_H_
