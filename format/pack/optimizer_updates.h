// What a recording says of its optimizers: which updates lie between two checkpoints, and where the
// gradients of each are among the results of collectives.
//
// For commands that read whole recordings. Memory: an entry for each result and each update. Pure
// functions; any thread. Nothing of it needs to be true: the program says what its optimizer does.
#ifndef DEJA_FORMAT_PACK_OPTIMIZER_UPDATES_H_
#define DEJA_FORMAT_PACK_OPTIMIZER_UPDATES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "format/payloads/prediction.h"
#include "format/reader/rank_reader.h"
#include "format/wire/frame_format.h"
#include "format/wire/messages.h"

namespace deja::format {

// A part of a gradient: bytes of a payload.
struct GradientRange {
  Hash128 payload;
  uint64_t offset = 0;  // in the payload
  uint64_t size = 0;
};

struct RecordedUpdate {
  OptimizerUpdate said;
  // One after the other; empty: not all of it is in the recording.
  std::vector<GradientRange> gradient;
};

// Payloads of parameters, first and second moment; zero: not registered as a tensor of its own.
using StatePayloads = std::array<Hash128, 3>;

// From one checkpoint of the rank to the next one.
struct StateChange {
  uint64_t count = 0;  // elements, float32
  StatePayloads before{};
  StatePayloads after{};
  std::vector<RecordedUpdate> updates;
};

// In their order. Updates of anything but float32, and state of which a checkpoint has nothing, are
// not among them.
std::vector<StateChange> FindStateChanges(const RankReader& reader);

// The numbers of an update as the rules need them. Programs compute them in single precision or in
// double.
std::vector<float> NumbersOf(const OptimizerUpdate& update, const UpdateRules& rules,
                             bool in_single);

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_OPTIMIZER_UPDATES_H_
