#include "format/tensor/plane_codec.h"

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "format/planes/huffman_codec.h"
#include "format/planes/packed_plane.h"
#include "format/tensor/tensor_codec.h"

namespace deja::format {
namespace {

constexpr size_t kMinSaving = 32;         // a plane is compressed if it saves 1/32
constexpr size_t kHuffmanPays = 8 << 10;  // bytes; making its tables costs as much as these
constexpr double kManySymbols = 6;        // bits; zstd's blocks adapt to them, a symbol a lookup
constexpr size_t kProbePieces = 4;
constexpr size_t kProbeBytes = 16 << 10;  // of planes that have four times as much
constexpr double kMatchesPay =
    0.93;  // of the bytes by entropy alone: a search takes ten times as long

// Per thread: contexts are expensive to make, and both directions are used from background threads.
struct PlaneWorkspace {
  ZSTD_CCtx* compressor = nullptr;
  ZSTD_DCtx* decompressor = nullptr;
  HuffmanWorkspace huffman;
  ~PlaneWorkspace() {
    ZSTD_freeCCtx(compressor);
    ZSTD_freeDCtx(decompressor);
  }
};

PlaneWorkspace& ThreadPlaneWorkspace() {
  static thread_local PlaneWorkspace workspace;
  return workspace;
}

bool Saves(size_t size, size_t of) {
  return size != 0 && size <= of - of / kMinSaving;
}

bool AllEqual(std::span<const std::byte> bytes) {
  return bytes.size() < 2 || std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

double EntropyBytes(std::span<const std::byte> bytes) {
  std::array<uint32_t, 256> counts{};
  for (const std::byte byte : bytes) ++counts[static_cast<uint8_t>(byte)];
  double bits = 0;
  for (const uint32_t count : counts)
    if (count != 0) bits += count * std::log2(static_cast<double>(bytes.size()) / count);
  return bits / 8;
}

ZSTD_CCtx* Compressor() {
  PlaneWorkspace& workspace = ThreadPlaneWorkspace();
  if (workspace.compressor == nullptr) workspace.compressor = ZSTD_createCCtx();
  return workspace.compressor;
}

// Bytes written to `out`, or 0 if it failed or does not pay.
size_t Search(std::span<const std::byte> in, std::span<std::byte> out) {
  ZSTD_CCtx* context = Compressor();
  if (context == nullptr) return 0;
  const size_t size = ZSTD_compressCCtx(context, out.data(), out.size(), in.data(), in.size(), 1);
  return ZSTD_isError(size) || size > in.size() - in.size() / kMinSaving ? 0 : size;
}

// Entropy coding only: every block is one run of literals.
size_t LiteralsOnly(std::span<const std::byte> in, std::span<std::byte> out) {
  ZSTD_CCtx* context = Compressor();
  if (context == nullptr) return 0;
  std::array<ZSTD_Sequence, kPayloadChunkBytes / ZSTD_BLOCKSIZE_MAX + 1> blocks{};
  size_t count = 0;
  for (size_t at = 0; at < in.size(); at += ZSTD_BLOCKSIZE_MAX) {
    const size_t size = std::min<size_t>(ZSTD_BLOCKSIZE_MAX, in.size() - at);
    blocks[count++].litLength = static_cast<unsigned>(size);
  }
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
  // The window must hold a whole plane, or the blocks would be smaller than the sequences say.
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 20);
  ZSTD_CCtx_setParameter(context, ZSTD_c_blockDelimiters, ZSTD_sf_explicitBlockDelimiters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  const size_t size = ZSTD_compressSequences(context, out.data(), out.size(), blocks.data(), count,
                                             in.data(), in.size());
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  return ZSTD_isError(size) || size > in.size() - in.size() / kMinSaving ? 0 : size;
}

// Whether pieces of the plane say that a search finds much that entropy coding does not.
bool FindsMatches(std::span<const std::byte> plane, std::span<std::byte> out) {
  if (plane.size() < 4 * kProbeBytes) return true;
  std::array<std::byte, kProbeBytes> probe;
  constexpr size_t kPiece = kProbeBytes / kProbePieces;
  for (size_t i = 0; i < kProbePieces; ++i)
    std::memcpy(probe.data() + i * kPiece,
                plane.data() + (plane.size() - kPiece) * i / (kProbePieces - 1), kPiece);
  const size_t size = Search(probe, out);
  return size != 0 && static_cast<double>(size) < kMatchesPay * EntropyBytes(probe);
}

// The mode and size of what entropy coding makes; stored if it does not pay.
PlaneEntry EntropyCode(double entropy, std::span<const std::byte> plane, std::span<std::byte> out) {
  if (plane.size() >= kHuffmanPays && entropy < kManySymbols) {
    const size_t size = HuffmanEncode(plane, out.data(), std::min(out.size(), plane.size()),
                                      ThreadPlaneWorkspace().huffman);
    if (Saves(size, plane.size())) return {PlaneMode::kHuffman, 0, 0, static_cast<uint32_t>(size)};
  }
  const size_t size = LiteralsOnly(plane, out);
  return {size == 0 ? PlaneMode::kStored : PlaneMode::kZstd, 0, 0, static_cast<uint32_t>(size)};
}

// In a fraction of the time. Stored if it does not pay.
PlaneEntry Packed(std::span<const std::byte> plane, std::span<std::byte> out) {
  const PackedRange range = PackedRange::For(plane);
  const size_t room = std::min(out.size(), plane.size() - plane.size() / kMinSaving);
  const size_t size = PackPlane(plane, range, out.first(room));
  if (size == 0) return {};
  return {PlaneMode::kPacked, range.first, 0, static_cast<uint32_t>(size)};
}

}  // namespace

size_t PlaneBound(size_t bytes) {
  return ZSTD_compressBound(std::max(bytes, kProbeBytes));
}

PlaneEntry EncodePlane(const PlaneSample& sample, std::span<const std::byte> plane,
                       std::span<std::byte> out, CodecEffort effort) {
  PlanePlan plan = sample.Plan();
  if (plan == PlanePlan::kCheckConstant) {
    if (plane.empty()) return {PlaneMode::kConstant, 0, 0, 0};
    if (AllEqual(plane)) return {PlaneMode::kConstant, static_cast<uint8_t>(plane[0]), 0, 0};
    plan = PlanePlan::kSearch;  // the sample missed something: sparse data
  } else if (effort == CodecEffort::kSmall && plan == PlanePlan::kSearch &&
             !FindsMatches(plane, out)) {
    plan = PlanePlan::kEntropy;
  }
  PlaneEntry entry;
  if (effort == CodecEffort::kFast) {
    if (plan != PlanePlan::kStore) entry = Packed(plane, out);
  } else if (plan == PlanePlan::kSearch) {
    const size_t size = Search(plane, out);
    if (size != 0) return {PlaneMode::kZstd, 0, 0, static_cast<uint32_t>(size)};
  } else if (plan == PlanePlan::kEntropy) {
    entry = EntropyCode(sample.entropy, plane, out);
  }
  if (entry.mode != PlaneMode::kStored) return entry;
  std::copy(plane.begin(), plane.end(), out.begin());
  return {PlaneMode::kStored, 0, 0, static_cast<uint32_t>(plane.size())};
}

Status ExpandZstd(std::span<const std::byte> in, std::span<std::byte> out) {
  PlaneWorkspace& workspace = ThreadPlaneWorkspace();
  if (workspace.decompressor == nullptr) workspace.decompressor = ZSTD_createDCtx();
  if (workspace.decompressor == nullptr) {
    return Fail(ErrorCode::kLimit, "no memory for a zstd context");
  }
  const size_t size =
      ZSTD_decompressDCtx(workspace.decompressor, out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(size)) {
    return Fail(ErrorCode::kCorrupt, std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  if (size != out.size()) {
    return Fail(ErrorCode::kCorrupt, "zstd: fewer bytes than the chunk has");
  }
  return {};
}

Status DecodePlane(const PlaneEntry& entry, std::span<const std::byte> in,
                   std::span<std::byte> plane) {
  switch (entry.mode) {
    case PlaneMode::kStored:
      if (in.size() == plane.size()) return {};
      return Fail(ErrorCode::kCorrupt, "planes: a stored plane has another size");
    case PlaneMode::kConstant:
      std::fill(plane.begin(), plane.end(), static_cast<std::byte>(entry.value));
      return {};
    case PlaneMode::kZstd:
      return ExpandZstd(in, plane);
    case PlaneMode::kHuffman:
      return HuffmanDecode(in, plane, ThreadPlaneWorkspace().huffman);
    case PlaneMode::kPacked:
      return UnpackPlane(in, entry.value, plane);
  }
  return Fail(ErrorCode::kCorrupt, "planes: unknown mode");
}

}  // namespace deja::format
