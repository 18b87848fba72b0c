// Lossless codecs for the bytes of tensors. docs/FORMAT.md, "Tensor codecs", is the specification.
//
// Pure functions, any thread, no state. Decoders treat their input as hostile: every length is
// checked before it is used and nothing is written outside `out`.
#ifndef DEJA_FORMAT_TENSOR_TENSOR_CODEC_H_
#define DEJA_FORMAT_TENSOR_TENSOR_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.h"

namespace deja::format {

enum class TensorCodec : uint32_t {
  kStored = 0,  // the bytes themselves
  kZstd = 1,    // one zstd frame
  kPlanes = 2,  // byte planes, each stored, constant, Huffman coded, zstd or packed
  // Byte planes of the difference to an earlier chunk (PayloadChunk.base), which only who has the
  // file can decode (format/tensor/element_difference.h).
  kDifference = 3,         // XOR
  kElementDifference = 4,  // of the elements' places in the order of their values
  // As kElementDifference, to what an optimizer should have made (format/payloads/prediction.h).
  kPrediction = 5,
};

// Largest chunk that is encoded at once; payloads are cut into chunks of this many bytes.
inline constexpr size_t kPayloadChunkBytes = 1 << 20;

struct EncodedTensor {
  TensorCodec codec = TensorCodec::kStored;
  std::span<const std::byte> bytes;  // into `scratch`, or the input itself when stored
};

// kFast: in two thirds of the time, and bf16 parameters with a ratio of 1.43 instead of 1.53.
enum class CodecEffort { kSmall, kFast };

// Encodes at most kPayloadChunkBytes. `element_size` is 1, 2, 4 or 8. `scratch` is reused between
// calls.
EncodedTensor EncodeTensor(std::span<const std::byte> in, uint32_t element_size,
                           std::vector<std::byte>& scratch,
                           CodecEffort effort = CodecEffort::kSmall);

// Decodes into `out`, whose size is the chunk's decoded size.
Status DecodeTensor(TensorCodec codec, uint32_t element_size, std::span<const std::byte> in,
                    std::span<std::byte> out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TENSOR_TENSOR_CODEC_H_
