// The encoder looks at a sample of the chunk and decides for each byte plane what pays; mantissa
// planes of trained or random floats are noise and are stored without a try. Planes for entropy
// coding alone are Huffman coded. Small ones are written as zstd blocks of literals only (no match
// search), whose code table is smaller. Zeros are left out of tensors that have many.
#include "format/tensor/tensor_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "format/planes/byte_planes.h"
#include "format/planes/nonzero_elements.h"
#include "format/tensor/plane_codec.h"
#include "format/tensor/tensor_sample.h"

namespace deja::format {
namespace {

// Layout of kPlanes, docs/FORMAT.md "Tensor codecs": flags, an entry per plane and for a bitmap,
// the planes, and the bytes after the last whole element.
constexpr uint8_t kRotated = 1;  // each element was rotated left by one bit: sign next to mantissa
constexpr uint8_t kSparse = 2;   // the planes have the elements that are not zero, a bitmap which
constexpr size_t kPlaneEntryBytes = 1 + 1 + 4 + 4;
constexpr size_t PlanesHeaderBytes(size_t entries) {
  return 1 + entries * kPlaneEntryBytes;
}

// Per thread, reused.
struct TensorWorkspace {
  std::vector<std::byte> planes;
  std::vector<std::byte> bitmap;
  std::vector<std::byte> nonzero;
};

TensorWorkspace& ThreadTensorWorkspace() {
  static thread_local TensorWorkspace workspace;
  return workspace;
}

// ---- Encoding

EncodedTensor Stored(std::span<const std::byte> in) {
  return {TensorCodec::kStored, in};
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

// Writes the chunk's parts one after the other.
class ChunkWriter {
 public:
  ChunkWriter(std::vector<std::byte>& out, uint8_t flags, size_t entries, CodecEffort effort)
      : out_(out), effort_(effort), used_(PlanesHeaderBytes(entries)) {
    out_[0] = static_cast<std::byte>(flags);
  }

  void Add(size_t entry, const PlaneSample& sample, std::span<const std::byte> plane) {
    PlaneEntry encoded = EncodePlane(sample, plane, std::span(out_).subspan(used_), effort_);
    encoded.offset = static_cast<uint32_t>(used_);
    PutEntry(out_.data(), entry, encoded);
    used_ += encoded.size;
  }
  // Where the bytes of a plane that stays as it is are to be put.
  std::byte* AddStored(size_t entry, size_t size) {
    PutEntry(out_.data(), entry,
             {PlaneMode::kStored, 0, static_cast<uint32_t>(used_), static_cast<uint32_t>(size)});
    used_ += size;
    return out_.data() + used_ - size;
  }
  void AddRest(std::span<const std::byte> rest) {
    std::copy(rest.begin(), rest.end(), out_.begin() + static_cast<ptrdiff_t>(used_));
    used_ += rest.size();
  }
  [[nodiscard]] size_t used() const { return used_; }

 private:
  std::vector<std::byte>& out_;
  const CodecEffort effort_;
  size_t used_;
};

template <typename U>
EncodedTensor EncodePlanes(std::span<const std::byte> in, std::vector<std::byte>& scratch,
                           CodecEffort effort) {
  constexpr size_t kPlanes = sizeof(U);
  const size_t elements = in.size() / kPlanes;
  TensorSample sample = SampleTensor<U>(in);
  // Single bytes may be text or indices too, where matches do not show in neighbours.
  if (kPlanes == 1) sample.planes[0].runs = true;
  std::array<bool, kPlanes> stored;
  for (size_t p = 0; p < kPlanes; ++p) stored[p] = sample.planes[p].Plan() == PlanePlan::kStore;
  if (!sample.sparse && std::all_of(stored.begin(), stored.end(), [](bool is) { return is; }))
    return Stored(in);

  const size_t entries = kPlanes + (sample.sparse ? 1 : 0);
  scratch.resize(PlanesHeaderBytes(entries) + kPlanes * PlaneBound(elements) +
                 PlaneBound(BitmapBytes(elements)) + kPlanes);
  ChunkWriter chunk(scratch, (sample.rotated ? kRotated : 0) | (sample.sparse ? kSparse : 0),
                    entries, effort);
  TensorWorkspace& workspace = ThreadTensorWorkspace();
  const std::byte* values = in.data();
  size_t count = elements;
  if (sample.sparse) {
    workspace.bitmap.resize(BitmapBytes(elements));
    workspace.nonzero.resize(elements * kPlanes + kNonzeroSlack);
    count =
        GatherNonzero<U>(in.data(), elements, workspace.bitmap.data(), workspace.nonzero.data());
    values = workspace.nonzero.data();
    chunk.Add(kPlanes, SampleTensor<uint8_t>(workspace.bitmap).planes[0], workspace.bitmap);
  }
  // Planes that stay as they are go straight to their place in the output, the others aside.
  workspace.planes.resize(kPlanes * elements);
  std::array<std::byte*, kMaxPlanes> planes{};
  for (size_t p = 0; p < kPlanes; ++p)
    planes[p] = stored[p] ? chunk.AddStored(p, count) : workspace.planes.data() + p * elements;
  SplitPlanes<U>(values, count, sample.rotated, planes);
  for (size_t p = 0; p < kPlanes; ++p)
    if (!stored[p]) chunk.Add(p, sample.planes[p], {planes[p], count});
  chunk.AddRest(in.subspan(elements * kPlanes));
  if (chunk.used() >= in.size()) return Stored(in);
  return {TensorCodec::kPlanes, std::span(scratch).first(chunk.used())};
}

// ---- Decoding

tl::unexpected<Error> Bad(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("planes: ") + what);
}

// The bytes of plane `p`, decoded to `plane` or, where they are stored, in `in` itself.
Result<const std::byte*> ReadPlane(std::span<const std::byte> in, size_t p,
                                   std::span<std::byte> plane) {
  const PlaneEntry entry = GetEntry(in.data(), p);
  // These mean nothing for a constant plane.
  if (entry.mode == PlaneMode::kConstant) {
    DEJA_RETURN_IF_ERROR(DecodePlane(entry, {}, plane));
    return plane.data();
  }
  if (entry.offset > in.size() || entry.size > in.size() - entry.offset)
    return Bad("a plane lies outside of the chunk");
  const std::span<const std::byte> encoded = in.subspan(entry.offset, entry.size);
  DEJA_RETURN_IF_ERROR(DecodePlane(entry, encoded, plane));
  return entry.mode == PlaneMode::kStored ? encoded.data() : plane.data();
}

// Which elements are not zero, and how many.
struct Bitmap {
  const std::byte* bits = nullptr;
  size_t count = 0;
};

Result<Bitmap> ReadBitmap(std::span<const std::byte> in, size_t p, size_t elements) {
  std::vector<std::byte>& room = ThreadTensorWorkspace().bitmap;
  room.resize(BitmapBytes(elements));
  const Result<const std::byte*> bits = ReadPlane(in, p, room);
  if (!bits) return tl::unexpected(bits.error());
  if (elements % 8 != 0 && static_cast<unsigned>((*bits)[elements / 8]) >> elements % 8 != 0)
    return Bad("the bitmap has more elements than the chunk");
  return Bitmap{*bits, CountNonzero({*bits, room.size()})};
}

template <typename U>
Status DecodePlanes(std::span<const std::byte> in, std::span<std::byte> out) {
  constexpr size_t kPlanes = sizeof(U);
  const size_t elements = out.size() / kPlanes;
  const size_t rest = out.size() - elements * kPlanes;
  if (in.empty()) return Bad("the chunk is too short");
  const auto flags = static_cast<uint8_t>(in[0]);
  if ((flags & ~(kRotated | kSparse)) != 0) return Bad("unknown flags");
  const bool sparse = (flags & kSparse) != 0;
  if (in.size() < PlanesHeaderBytes(kPlanes + (sparse ? 1 : 0)) + rest)
    return Bad("the chunk is too short");
  Bitmap bitmap{nullptr, elements};
  if (sparse) {
    const Result<Bitmap> read = ReadBitmap(in, kPlanes, elements);
    if (!read) return tl::unexpected(read.error());
    bitmap = *read;
  }
  TensorWorkspace& workspace = ThreadTensorWorkspace();
  workspace.planes.resize(kPlanes * elements);
  std::array<const std::byte*, kMaxPlanes> planes{};
  for (size_t p = 0; p < kPlanes; ++p) {
    const Result<const std::byte*> plane =
        ReadPlane(in, p, {workspace.planes.data() + p * elements, bitmap.count});
    if (!plane) return tl::unexpected(plane.error());
    planes[p] = *plane;
  }
  const bool rotated = (flags & kRotated) != 0;
  if (sparse) {
    workspace.nonzero.resize(elements * kPlanes + kNonzeroSlack);
    JoinPlanes<U>(planes, bitmap.count, rotated, workspace.nonzero.data());
    ScatterNonzero<U>(workspace.nonzero.data(), bitmap.bits, elements, out.data());
  } else {
    JoinPlanes<U>(planes, elements, rotated, out.data());
  }
  std::copy_n(in.end() - static_cast<ptrdiff_t>(rest), rest,
              out.end() - static_cast<ptrdiff_t>(rest));
  return {};
}

}  // namespace

EncodedTensor EncodeTensor(std::span<const std::byte> in, uint32_t element_size,
                           std::vector<std::byte>& scratch, CodecEffort effort) {
  constexpr size_t kSmallest = 128;  // what smaller chunks could save, their frame costs
  if (in.size() < kSmallest || in.size() > kPayloadChunkBytes) return Stored(in);
  switch (element_size) {
    case 1:
      return EncodePlanes<uint8_t>(in, scratch, effort);
    case 2:
      return EncodePlanes<uint16_t>(in, scratch, effort);
    case 4:
      return EncodePlanes<uint32_t>(in, scratch, effort);
    case 8:
      return EncodePlanes<uint64_t>(in, scratch, effort);
    default:
      return Stored(in);
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
      return ExpandZstd(in, out);
    case TensorCodec::kPlanes:
      if (element_size == 1) return DecodePlanes<uint8_t>(in, out);
      if (element_size == 2) return DecodePlanes<uint16_t>(in, out);
      if (element_size == 4) return DecodePlanes<uint32_t>(in, out);
      if (element_size == 8) return DecodePlanes<uint64_t>(in, out);
      return Fail(ErrorCode::kCorrupt, "planes: element size is not 1, 2, 4 or 8");
    case TensorCodec::kDifference:
    case TensorCodec::kElementDifference:
    case TensorCodec::kPrediction:
      return Fail(ErrorCode::kCorrupt, "a difference without what it is a difference to");
  }
  return Fail(ErrorCode::kCorrupt,
              "unknown tensor codec " + std::to_string(static_cast<uint32_t>(codec)));
}

}  // namespace deja::format
