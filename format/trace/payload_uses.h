// Which payloads a rank's events refer to, and how late in the run they are still needed.
//
// For commands that read whole recordings. Memory: an entry for each distinct payload. Pure
// functions; any thread.
#ifndef DEJA_FORMAT_TRACE_PAYLOAD_USES_H_
#define DEJA_FORMAT_TRACE_PAYLOAD_USES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/ids.h"
#include "format/reader/file_ranges.h"
#include "format/reader/rank_reader.h"
#include "format/wire/messages.h"

namespace deja::format {

struct HashOfHash {
  size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.Prefix()); }
};

struct PayloadReference {
  Hash128 hash;
  bool is_input = false;  // the program consumed it, at every level; else the bytes of a tensor
  uint32_t segment = 0;   // Tensor.segment and the like
};

// Calls use(PayloadReference) for each payload that `event` says is kept.
template <typename Use>
void ForEachPayload(const Event& event, const Use& use) {
  const auto tensor = [&](const Tensor& t) {
    if (t.payload == static_cast<uint32_t>(PayloadState::kKept))
      use(PayloadReference{t.hash, false, t.segment});
  };
  if (const auto* enter = event.As<CallEnter>()) {
    for (const Tensor& t : enter->inputs) tensor(t);
  } else if (const auto* results = event.As<CallResults>()) {
    for (const Tensor& t : results->outputs) tensor(t);
  } else if (const auto* snapshot = event.As<Snapshot>()) {
    tensor(snapshot->tensor);
  } else if (const auto* input = event.As<Input>()) {
    if (!input->hash.IsZero() && input->data.empty())
      use(PayloadReference{input->hash, true, input->segment});
  } else if (const auto* file = event.As<InputFile>()) {
    if (!file->entries_hash.IsZero())
      use(PayloadReference{file->entries_hash, true, file->segment});
  } else if (const auto* read = event.As<FileRead>()) {
    if (read->payload != static_cast<uint32_t>(PayloadState::kKept)) return;
    for (const FileRange& range : RangesOf(*read))
      use(PayloadReference{range.hash, true, read->segment});
  } else if (const auto* transfer = event.As<Transfer>()) {
    if (!transfer->hash.IsZero()) use(PayloadReference{transfer->hash, true, transfer->segment});
  }
}

// When something is needed; what is greater is given up later. Numbers below kStart are steps or,
// of a rank without steps, parts of its recording, kParts of them with as many events each.
using Period = uint64_t;
inline constexpr Period kInputs = ~uint64_t{0};     // at any time: the program's inputs
inline constexpr Period kStart = ~uint64_t{0} - 1;  // before the first step
inline constexpr Period kParts = 64;

struct PayloadUse {
  Hash128 hash;
  Period period = 0;  // the last one in which it is needed
};

// The distinct payloads of `reader` that are needed in a period for which `wanted` is true. They
// are sorted by period, the greatest first, and within one by their order in the recording.
std::vector<PayloadUse> FindPayloadUses(const RankReader& reader,
                                        const std::function<bool(Period)>& wanted);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_PAYLOAD_USES_H_
