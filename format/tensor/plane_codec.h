// Coding of one byte plane as it is best planned: stored, constant, Huffman, zstd or packed.
//
// Pure functions but for buffers of the calling thread, any thread. The decoder treats its input as
// hostile.
#ifndef DEJA_FORMAT_TENSOR_PLANE_CODEC_H_
#define DEJA_FORMAT_TENSOR_PLANE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.h"
#include "format/tensor/tensor_codec.h"
#include "format/tensor/tensor_sample.h"

namespace deja::format {

// On disk: docs/FORMAT.md, "Tensor codecs".
enum class PlaneMode : uint8_t {
  kStored = 0,
  kConstant = 1,
  kZstd = 2,
  kHuffman = 3,
  kPacked = 4,
};
struct PlaneEntry {
  PlaneMode mode = PlaneMode::kStored;
  uint8_t value = 0;    // of a constant plane; the first one with a code, of a packed plane
  uint32_t offset = 0;  // of the plane's bytes from the start of the encoded chunk
  uint32_t size = 0;    // of the plane's bytes as encoded
};

// Room that EncodePlane needs.
size_t PlaneBound(size_t bytes);

// Compresses `plane` to `out` as `sample` makes it likely to pay, or copies it there; returns how,
// without the offset.
PlaneEntry EncodePlane(const PlaneSample& sample, std::span<const std::byte> plane,
                       std::span<std::byte> out, CodecEffort effort);

// Decodes `in` into `plane`, whose size is known, unless it is stored: that is checked only.
Status DecodePlane(const PlaneEntry& entry, std::span<const std::byte> in,
                   std::span<std::byte> plane);

// One zstd frame that must fill `out` exactly.
Status ExpandZstd(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TENSOR_PLANE_CODEC_H_
