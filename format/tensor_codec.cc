// The encoder looks at a sample of the chunk and decides for each byte plane what pays; mantissa
// planes of trained or random floats are noise and are stored without a try. What is compressed by
// entropy coding alone is Huffman coded or, when it is small, written as zstd blocks of literals
// only (no match search), whose code table is smaller.
#include "format/tensor_codec.h"

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "format/byte_planes.h"
#include "format/huffman_codec.h"

namespace deja::format {
namespace {

// Layout of kPlanes, docs/FORMAT.md "Tensor codecs": flags, an entry per plane, the planes, and the
// bytes behind the last whole element.
constexpr uint8_t kRotated = 1;  // each element was rotated left by one bit: sign next to mantissa
enum class PlaneMode : uint8_t { kStored = 0, kConstant = 1, kZstd = 2, kHuffman = 3 };
struct PlaneEntry {
  PlaneMode mode = PlaneMode::kStored;
  uint8_t value = 0;    // of a constant plane
  uint32_t offset = 0;  // of the plane's bytes from the start of the encoded chunk
  uint32_t size = 0;    // of the plane's bytes as encoded
};
constexpr size_t kPlaneEntryBytes = 1 + 1 + 4 + 4;
constexpr size_t PlanesHeaderBytes(size_t planes) {
  return 1 + planes * kPlaneEntryBytes;
}

constexpr size_t kSampleRuns = 16;
constexpr size_t kLeastRuns = 4;
constexpr size_t kSampleRunElements = 256;
constexpr double kEntropyCodingPays = 7.6;  // bits a byte; above, it saves less than it costs
constexpr double kSearchPays = 7.0;         // above, matches must be frequent to be worth a search
constexpr size_t kMinSaving = 32;           // a plane is compressed if it saves 1/32
constexpr size_t kHuffmanPays = 8 << 10;    // bytes; making its tables costs as much as these

// Per thread: contexts are expensive to make, and both directions are used from background threads.
struct Workspace {
  ZSTD_CCtx* compressor = nullptr;
  ZSTD_DCtx* decompressor = nullptr;
  std::vector<std::byte> planes;
  HuffmanWorkspace huffman;
  ~Workspace() {
    ZSTD_freeCCtx(compressor);
    ZSTD_freeDCtx(decompressor);
  }
};

Workspace& ThreadWorkspace() {
  static thread_local Workspace workspace;
  return workspace;
}

template <typename U>
U LoadElement(const std::byte* at) {
  U value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// ---- What a sample says

struct PlaneSample {
  double entropy = 0;  // bits a byte, order 0
  bool constant = false;
  bool runs = false;  // equal neighbours are more frequent than chance: matches will be found
  double equal_neighbours = 0;
};

struct Sample {
  std::array<PlaneSample, kMaxPlanes> planes;
};

// x * log2(x) of the counts that a sample can have. Small tensors would spend most of their time in
// log2 otherwise.
class EntropyTable {
 public:
  EntropyTable() {
    for (size_t x = 2; x < terms_.size(); ++x) {
      terms_[x] = static_cast<float>(static_cast<double>(x) * std::log2(static_cast<double>(x)));
    }
  }
  [[nodiscard]] double Term(uint32_t count) const { return terms_[count]; }

 private:
  std::array<float, kSampleRuns * kSampleRunElements + 1> terms_{};
};

PlaneSample Summarize(const std::array<uint32_t, 256>& counts, uint32_t total, uint32_t equal,
                      uint32_t pairs) {
  static const EntropyTable table;
  PlaneSample plane;
  if (total == 0) return plane;
  double terms = 0;
  uint64_t squares = 0;
  for (const uint32_t count : counts) {
    terms += table.Term(count);
    squares += uint64_t{count} * count;
  }
  plane.entropy = (table.Term(total) - terms) / total;
  const double by_chance = static_cast<double>(squares) / (static_cast<double>(total) * total);
  plane.constant = by_chance == 1.0;
  plane.equal_neighbours = pairs == 0 ? 0 : static_cast<double>(equal) / pairs;
  plane.runs = plane.equal_neighbours > 1.5 * by_chance + 0.02 && by_chance < 1.0;
  return plane;
}

template <typename U>
Sample TakeSample(std::span<const std::byte> in, bool rotate) {
  const size_t elements = in.size() / sizeof(U);
  // A sixteenth of the elements, but enough of them for the entropy of a byte to show.
  const size_t wanted = std::clamp(elements / (16 * kSampleRunElements), kLeastRuns, kSampleRuns);
  const size_t runs = std::min(wanted, (elements + kSampleRunElements - 1) / kSampleRunElements);
  std::array<std::array<uint32_t, 256>, sizeof(U)> counts{};
  std::array<uint32_t, sizeof(U)> equal{};
  uint32_t total = 0;
  uint32_t pairs = 0;
  for (size_t run = 0; run < runs; ++run) {
    const size_t begin =
        runs == 1 ? 0 : (elements - std::min(elements, kSampleRunElements)) * run / (runs - 1);
    const size_t end = std::min(elements, begin + kSampleRunElements);
    U previous = 0;
    for (size_t i = begin; i < end; ++i) {
      U value = LoadElement<U>(in.data() + i * sizeof(U));
      if (rotate) value = std::rotl(value, 1);
      for (size_t p = 0; p < sizeof(U); ++p) {
        const auto byte = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * p));
        ++counts[p][byte];
        if (i != begin) {
          equal[p] += byte == static_cast<uint8_t>(static_cast<uint64_t>(previous) >> (8 * p));
        }
      }
      ++total;
      if (i != begin) ++pairs;
      previous = value;
    }
  }
  Sample sample;
  for (size_t p = 0; p < sizeof(U); ++p) {
    sample.planes[p] = Summarize(counts[p], total, equal[p], pairs);
  }
  return sample;
}

enum class Plan { kStore, kCheckConstant, kEntropy, kSearch };

Plan PlanFor(const PlaneSample& plane) {
  if (plane.constant) return Plan::kCheckConstant;
  if (plane.entropy > kSearchPays) {
    if (plane.equal_neighbours > 0.25) return Plan::kSearch;
    return plane.entropy > kEntropyCodingPays ? Plan::kStore : Plan::kEntropy;
  }
  return plane.runs ? Plan::kSearch : Plan::kEntropy;
}

bool AllEqual(std::span<const std::byte> bytes) {
  return bytes.size() < 2 || std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// ---- zstd

ZSTD_CCtx* Compressor() {
  Workspace& workspace = ThreadWorkspace();
  if (workspace.compressor == nullptr) workspace.compressor = ZSTD_createCCtx();
  return workspace.compressor;
}

// Bytes written to `out`, or 0 if it failed or does not pay.
size_t Search(std::span<const std::byte> in, std::byte* out, size_t room) {
  ZSTD_CCtx* context = Compressor();
  if (context == nullptr) return 0;
  const size_t size = ZSTD_compressCCtx(context, out, room, in.data(), in.size(), 1);
  return ZSTD_isError(size) || size > in.size() - in.size() / kMinSaving ? 0 : size;
}

// Entropy coding only: every block is one run of literals.
size_t EntropyCode(std::span<const std::byte> in, std::byte* out, size_t room) {
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
  const size_t size =
      ZSTD_compressSequences(context, out, room, blocks.data(), count, in.data(), in.size());
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  return ZSTD_isError(size) || size > in.size() - in.size() / kMinSaving ? 0 : size;
}

Status Expand(std::span<const std::byte> in, std::span<std::byte> out) {
  Workspace& workspace = ThreadWorkspace();
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

// ---- Encoding

EncodedTensor Stored(std::span<const std::byte> in) {
  return {TensorCodec::kStored, in};
}

EncodedTensor EncodeBytes(std::span<const std::byte> in, std::vector<std::byte>& scratch) {
  const Plan plan = PlanFor(TakeSample<uint8_t>(in, false).planes[0]);
  if (plan == Plan::kStore) return Stored(in);
  scratch.resize(ZSTD_compressBound(in.size()));
  const size_t size = Search(in, scratch.data(), scratch.size());
  if (size == 0) return Stored(in);
  return {TensorCodec::kZstd, std::span(scratch).first(size)};
}

void PutEntry(std::byte* header, size_t plane, const PlaneEntry& entry) {
  std::byte* at = header + 1 + plane * kPlaneEntryBytes;
  at[0] = static_cast<std::byte>(entry.mode);
  at[1] = static_cast<std::byte>(entry.value);
  std::memcpy(at + 2, &entry.offset, sizeof entry.offset);
  std::memcpy(at + 6, &entry.size, sizeof entry.size);
}

PlaneEntry GetEntry(const std::byte* header, size_t plane) {
  const std::byte* at = header + 1 + plane * kPlaneEntryBytes;
  PlaneEntry entry;
  entry.mode = static_cast<PlaneMode>(at[0]);
  entry.value = static_cast<uint8_t>(at[1]);
  std::memcpy(&entry.offset, at + 2, sizeof entry.offset);
  std::memcpy(&entry.size, at + 6, sizeof entry.size);
  return entry;
}

// Compresses one plane to `out` as planned, or copies it there; returns how.
PlaneEntry EncodePlane(Plan plan, std::span<const std::byte> plane, std::byte* out, size_t room) {
  if (plan == Plan::kCheckConstant) {
    if (AllEqual(plane)) return {PlaneMode::kConstant, static_cast<uint8_t>(plane[0]), 0, 0};
    plan = Plan::kSearch;  // the sample missed something: sparse data
  }
  if (plan == Plan::kEntropy && plane.size() >= kHuffmanPays) {
    const size_t size =
        HuffmanEncode(plane, out, std::min(room, plane.size()), ThreadWorkspace().huffman);
    if (size != 0 && size <= plane.size() - plane.size() / kMinSaving)
      return {PlaneMode::kHuffman, 0, 0, static_cast<uint32_t>(size)};
  }
  const size_t size =
      plan == Plan::kSearch ? Search(plane, out, room) : EntropyCode(plane, out, room);
  if (size != 0) return {PlaneMode::kZstd, 0, 0, static_cast<uint32_t>(size)};
  std::memcpy(out, plane.data(), plane.size());
  return {PlaneMode::kStored, 0, 0, static_cast<uint32_t>(plane.size())};
}

template <typename U>
EncodedTensor EncodePlanes(std::span<const std::byte> in, std::vector<std::byte>& scratch) {
  constexpr size_t kPlanes = sizeof(U);
  const size_t elements = in.size() / kPlanes;
  Sample plain = TakeSample<U>(in, false);
  const Sample rotated = TakeSample<U>(in, true);
  // Rotation moves the sign to the lowest plane and fills the top plane with the exponent.
  const auto top = [](const Sample& s) { return s.planes[kPlanes - 1].entropy; };
  const bool rotate = top(rotated) < top(plain);
  const Sample& sample = rotate ? rotated : plain;

  std::array<Plan, kPlanes> plans;
  size_t stored_planes = 0;
  for (size_t p = 0; p < kPlanes; ++p) {
    plans[p] = PlanFor(sample.planes[p]);
    stored_planes += plans[p] == Plan::kStore;
  }
  if (stored_planes == kPlanes) return Stored(in);

  // Planes that stay as they are go straight to their place in the output, the others aside.
  Workspace& workspace = ThreadWorkspace();
  workspace.planes.resize(kPlanes * elements);
  scratch.resize(PlanesHeaderBytes(kPlanes) + kPlanes * ZSTD_compressBound(elements) + kPlanes);
  size_t used = PlanesHeaderBytes(kPlanes);
  std::array<std::byte*, kMaxPlanes> planes{};
  for (size_t p = 0; p < kPlanes; ++p) {
    planes[p] = workspace.planes.data() + p * elements;
    if (plans[p] != Plan::kStore) continue;
    planes[p] = scratch.data() + used;
    PutEntry(scratch.data(), p,
             {PlaneMode::kStored, 0, static_cast<uint32_t>(used), static_cast<uint32_t>(elements)});
    used += elements;
  }
  scratch[0] = static_cast<std::byte>(rotate ? kRotated : 0);
  SplitPlanes<U>(in.data(), elements, rotate, planes);
  for (size_t p = 0; p < kPlanes; ++p) {
    if (plans[p] == Plan::kStore) continue;
    PlaneEntry entry =
        EncodePlane(plans[p], {planes[p], elements}, scratch.data() + used, scratch.size() - used);
    entry.offset = static_cast<uint32_t>(used);
    PutEntry(scratch.data(), p, entry);
    used += entry.size;
  }
  const size_t rest = in.size() - elements * kPlanes;
  std::memcpy(scratch.data() + used, in.data() + elements * kPlanes, rest);
  used += rest;
  if (used >= in.size()) return Stored(in);
  return {TensorCodec::kPlanes, std::span(scratch).first(used)};
}

// ---- Decoding

template <typename U>
Status DecodePlanes(std::span<const std::byte> in, std::span<std::byte> out) {
  constexpr size_t kPlanes = sizeof(U);
  const size_t elements = out.size() / kPlanes;
  const size_t rest = out.size() - elements * kPlanes;
  if (in.size() < PlanesHeaderBytes(kPlanes) + rest) {
    return Fail(ErrorCode::kCorrupt, "planes: the chunk is too short");
  }
  const auto flags = static_cast<uint8_t>(in[0]);
  if ((flags & ~kRotated) != 0) return Fail(ErrorCode::kCorrupt, "planes: unknown flags");
  Workspace& workspace = ThreadWorkspace();
  workspace.planes.resize(kPlanes * elements);
  std::array<const std::byte*, kMaxPlanes> planes{};
  for (size_t p = 0; p < kPlanes; ++p) {
    const PlaneEntry entry = GetEntry(in.data(), p);
    if (entry.offset > in.size() || entry.size > in.size() - entry.offset) {
      return Fail(ErrorCode::kCorrupt, "planes: a plane lies outside of the chunk");
    }
    const std::span<const std::byte> encoded = in.subspan(entry.offset, entry.size);
    const std::span<std::byte> plane(workspace.planes.data() + p * elements, elements);
    planes[p] = plane.data();
    switch (entry.mode) {
      case PlaneMode::kStored:
        if (encoded.size() != elements) {
          return Fail(ErrorCode::kCorrupt, "planes: a stored plane has another size");
        }
        planes[p] = encoded.data();
        break;
      case PlaneMode::kConstant:
        std::memset(plane.data(), entry.value, plane.size());
        break;
      case PlaneMode::kZstd:
        DEJA_RETURN_IF_ERROR(Expand(encoded, plane));
        break;
      case PlaneMode::kHuffman:
        DEJA_RETURN_IF_ERROR(HuffmanDecode(encoded, plane, workspace.huffman));
        break;
      default:
        return Fail(ErrorCode::kCorrupt, "planes: unknown mode");
    }
  }
  JoinPlanes<U>(planes, elements, (flags & kRotated) != 0, out.data());
  std::copy_n(in.end() - static_cast<ptrdiff_t>(rest), rest,
              out.end() - static_cast<ptrdiff_t>(rest));
  return {};
}

}  // namespace

EncodedTensor EncodeTensor(std::span<const std::byte> in, uint32_t element_size,
                           std::vector<std::byte>& scratch) {
  constexpr size_t kSmallest = 128;  // what smaller chunks could save, their frame costs
  if (in.size() < kSmallest || in.size() > kPayloadChunkBytes) return Stored(in);
  switch (element_size) {
    case 2:
      return EncodePlanes<uint16_t>(in, scratch);
    case 4:
      return EncodePlanes<uint32_t>(in, scratch);
    case 8:
      return EncodePlanes<uint64_t>(in, scratch);
    default:
      return EncodeBytes(in, scratch);
  }
}

Status DecodeTensor(TensorCodec codec, uint32_t element_size, std::span<const std::byte> in,
                    std::span<std::byte> out) {
  if (out.size() > kPayloadChunkBytes) {
    return Fail(ErrorCode::kLimit, "a chunk of a payload is larger than the format allows");
  }
  switch (codec) {
    case TensorCodec::kStored:
      if (in.size() != out.size()) {
        return Fail(ErrorCode::kCorrupt, "a stored chunk has another size than it says");
      }
      std::copy(in.begin(), in.end(), out.begin());
      return {};
    case TensorCodec::kZstd:
      return Expand(in, out);
    case TensorCodec::kPlanes:
      if (element_size == 2) return DecodePlanes<uint16_t>(in, out);
      if (element_size == 4) return DecodePlanes<uint32_t>(in, out);
      if (element_size == 8) return DecodePlanes<uint64_t>(in, out);
      return Fail(ErrorCode::kCorrupt, "planes: element size is not 2, 4 or 8");
  }
  return Fail(ErrorCode::kCorrupt,
              "unknown tensor codec " + std::to_string(static_cast<uint32_t>(codec)));
}

}  // namespace deja::format
