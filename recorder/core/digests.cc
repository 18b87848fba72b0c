#include "recorder/core/digests.h"

#include "digest/digest.h"
#include "preload/cuda/device.h"

namespace deja::recorder {

void FillDigest(Recording& rec, std::span<const std::byte> bytes, bool keep, format::Tensor& tensor,
                uint32_t series) {
  const digest::TensorDigest digest = digest::DigestTensor(bytes, tensor.dtype);
  tensor.hash = digest.hash;
  tensor.stats = digest.stats;
  if (!keep || rec.config.level != Level::kFull) return;
  const format::Placed placed =
      rec.KeepPayload(tensor.hash, bytes, digest::ElementSize(tensor.dtype), series);
  tensor.payload = static_cast<uint32_t>(placed.kept ? format::PayloadState::kKept
                                                     : format::PayloadState::kDropped);
  tensor.segment = placed.segment;
}

void DigestNow(Recording& rec, const preload::BufferUse& use, bool keep, format::Tensor& tensor,
               uint32_t series) {
  if (rec.config.level == Level::kOrder || use.data == nullptr || use.empty()) return;
  FillDigest(rec, {static_cast<const std::byte*>(use.data), use.bytes}, keep, tensor, series);
}

}  // namespace deja::recorder
