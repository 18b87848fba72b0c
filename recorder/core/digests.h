// Digests and payloads of tensors that lie in the processor's memory.
//
// Any thread, under the guard.
#ifndef DEJA_RECORDER_CORE_DIGESTS_H_
#define DEJA_RECORDER_CORE_DIGESTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/wire/messages.h"
#include "preload/calls/buffers.h"
#include "recorder/core/recording.h"

namespace deja::recorder {

// Fills in hash, statistics and, if `keep` and the level says so, the payload of `tensor`.
// `series`: SeriesNumber of what it may differ little from.
void FillDigest(Recording& rec, std::span<const std::byte> bytes, bool keep, format::Tensor& tensor,
                uint32_t series = 0);
// The same for memory of the processor's, if there is any and the level asks for digests.
void DigestNow(Recording& rec, const preload::BufferUse& use, bool keep, format::Tensor& tensor,
               uint32_t series = 0);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_DIGESTS_H_
