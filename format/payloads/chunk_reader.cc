#include "format/payloads/chunk_reader.h"

#include <bit>
#include <cstring>
#include <utility>

#include "format/tensor/element_difference.h"
#include "format/tensor/payload_bases.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

constexpr DifferenceKind kOfFloats{TensorCodec::kElementDifference, sizeof(float)};

TensorCodec CodecOf(const PayloadChunk& chunk) {
  return static_cast<TensorCodec>(chunk.codec);
}
bool Differs(const PayloadChunk& chunk) {
  return IsDifference(CodecOf(chunk));
}
DifferenceKind KindOf(const PayloadChunk& chunk) {
  return {CodecOf(chunk), chunk.element_size};
}

// For a chunk that builds on another one: the difference.
Status DecodeOwn(const PayloadChunk& chunk, std::span<std::byte> out) {
  const bool builds_on = Differs(chunk) || CodecOf(chunk) == TensorCodec::kPrediction;
  return DecodeTensor(builds_on ? TensorCodec::kPlanes : CodecOf(chunk), chunk.element_size,
                      AsBytes(chunk.data), out);
}

}  // namespace

Status ParseChunk(std::span<const std::byte> frame, PayloadChunk& chunk) {
  const auto bad = [](const char* what) {
    return Fail(ErrorCode::kCorrupt, std::string("payload chunk: ") + what);
  };
  if (!Decode(frame, chunk)) return bad("it cannot be decoded");
  if (chunk.hash.IsZero()) return bad("it has no hash");
  if (chunk.size > kPayloadChunkBytes || chunk.total_size > kMaxPayloadBytes) {
    return bad("larger than the format allows");
  }
  if (chunk.offset > chunk.total_size || chunk.size > chunk.total_size - chunk.offset) {
    return bad("it lies outside of its payload");
  }
  if (chunk.size == 0 && chunk.total_size != 0) return bad("it is empty");
  return {};
}

std::string ChunkReader::PlaceOf(uint64_t at) const {
  return file_.name() + ", offset " + std::to_string(at) + ": ";
}

tl::unexpected<Error> ChunkReader::Bad(uint64_t at, const std::string& what) const {
  return Fail(ErrorCode::kCorrupt, PlaceOf(at) + what);
}

Status ChunkReader::Read(uint64_t at, std::vector<std::byte>& frame, PayloadChunk& chunk) const {
  FrameReader reader(file_);
  const FrameResult result = reader.ReadAt(at, frame);
  if (result.outcome != FrameOutcome::kRecord || result.type != FrameType::kPayloadChunk)
    return Bad(at, result.reason.empty() ? "not a payload chunk" : result.reason);
  return ParseChunk(frame, chunk);
}

Status ChunkReader::ReadBytes(uint64_t at, std::vector<std::byte>& bytes) {
  std::vector<std::byte> frame;
  PayloadChunk chunk;
  DEJA_RETURN_IF_ERROR(Read(at, frame, chunk));
  bytes.resize(static_cast<size_t>(chunk.size));
  return Decode(chunk, at, bytes);
}

Status ChunkReader::Decode(const PayloadChunk& chunk, uint64_t at, std::span<std::byte> out) {
  DEJA_RETURN_IF_ERROR(DecodeOwn(chunk, out));
  if (Differs(chunk)) return AddDifferences(chunk, at, out);
  if (CodecOf(chunk) == TensorCodec::kPrediction) return AddPrediction(chunk, at, out);
  return {};
}

Status ChunkReader::AddDifferences(const PayloadChunk& chunk, uint64_t at,
                                   std::span<std::byte> out) const {
  const DifferenceKind kind = KindOf(chunk);
  std::vector<std::byte> bytes;
  std::vector<std::byte> decoded(out.size());
  PayloadChunk base = chunk;
  for (uint32_t differences = 1; Differs(base); ++differences) {
    const uint64_t from = base.base;
    if (differences > kMaxDifferences) return Bad(at, "it builds on too many other chunks");
    if (from >= at) return Bad(at, "it builds on what comes after it");
    base = PayloadChunk();
    if (const Status read = Read(from, bytes, base); !read)
      return Fail(read.error().code,
                  PlaceOf(at) + "what it builds on cannot be read: " + read.error().message);
    if (base.offset != chunk.offset || base.size != chunk.size)
      return Bad(at, "it builds on a chunk of another place");
    if (CodecOf(base) == TensorCodec::kPrediction) return Bad(at, "it builds on a prediction");
    DEJA_RETURN_IF_ERROR(DecodeOwn(base, decoded));
    if (!Differs(base)) {
      ApplyDifference(kind, decoded, out);
    } else if (KindOf(base) == kind) {
      JoinDifferences(kind, decoded, out);
    } else {
      return Bad(at, "it builds on a difference of another kind");
    }
    at = from;
  }
  return {};
}

Status ChunkReader::ReadPrediction(uint64_t at, Prediction& prediction) const {
  FrameReader reader(file_);
  std::vector<std::byte> frame;
  const FrameResult result = reader.ReadAt(at, frame);
  if (result.outcome != FrameOutcome::kRecord || result.type != FrameType::kPrediction)
    return Bad(at, result.reason.empty() ? "not a prediction" : result.reason);
  if (!format::Decode(frame, prediction)) return Bad(at, "prediction: it cannot be decoded");
  if (const std::string wrong = WhatIsWrong(prediction); !wrong.empty())
    return Bad(at, "prediction: " + wrong);
  return {};
}

Status ChunkReader::Count(uint64_t at, uint64_t gradient_pieces) {
  if (!counted_.insert(at).second) return {};
  if (counted_.size() > kMaxPredictions) return Bad(at, "it builds on too many predictions");
  gradient_pieces_ += gradient_pieces;
  if (gradient_pieces_ > kMaxGradientPieces)
    return Bad(at, "it builds on too many pieces of gradients");
  return {};
}

Status ChunkReader::FindState(uint64_t at, std::shared_ptr<const PredictedState>& state) {
  if (const auto known = predicted_.find(at); known != predicted_.end()) {
    state = known->second;
    return {};
  }
  if (states_ != nullptr) state = states_->Find(segment_, at);
  if (state != nullptr) {
    for (const auto& [place, pieces] : state->gradient_pieces)
      DEJA_RETURN_IF_ERROR(Count(place, pieces));
  } else {
    Prediction prediction;
    DEJA_RETURN_IF_ERROR(ReadPrediction(at, prediction));
    const auto computed = std::make_shared<PredictedState>();
    DEJA_RETURN_IF_ERROR(Compute(prediction, at, *computed));
    if (states_ != nullptr) states_->Keep(segment_, at, computed);
    state = computed;
  }
  predicted_.emplace(at, state);
  return {};
}

Status ChunkReader::AddPrediction(const PayloadChunk& chunk, uint64_t at,
                                  std::span<std::byte> out) {
  if (chunk.prediction >= at) return Bad(at, "it builds on what comes after it");
  std::shared_ptr<const PredictedState> state;
  DEJA_RETURN_IF_ERROR(FindState(chunk.prediction, state));
  const std::vector<float>* part = state->values.Part(static_cast<StatePart>(chunk.state));
  if (part == nullptr || part->size() * sizeof(float) != out.size() ||
      chunk.element_size != sizeof(float))
    return Bad(at, "its prediction is not one of its elements");
  ApplyDifference(kOfFloats, std::as_bytes(std::span(*part)), out);
  return {};
}

Status ChunkReader::Predict(const Prediction& prediction, uint64_t at, OptimizerState& state) {
  PredictedState computed;
  DEJA_RETURN_IF_ERROR(Compute(prediction, at, computed));
  state = std::move(computed.values);
  return {};
}

Status ChunkReader::Compute(const Prediction& prediction, uint64_t at, PredictedState& state) {
  uint64_t pieces = 0;
  for (const PredictedUpdate& update : prediction.updates) pieces += update.chunks.size();
  DEJA_RETURN_IF_ERROR(Count(at, pieces));
  state.gradient_pieces.emplace(at, pieces);
  OptimizerState& values = state.values;
  DEJA_RETURN_IF_ERROR(ReadPart(prediction, at, prediction.parameters, values.parameters, state));
  DEJA_RETURN_IF_ERROR(ReadPart(prediction, at, prediction.first_moment, values.first, state));
  DEJA_RETURN_IF_ERROR(ReadPart(prediction, at, prediction.second_moment, values.second, state));
  std::vector<float> gradient(prediction.size / sizeof(float));
  for (const PredictedUpdate& update : prediction.updates) {
    DEJA_RETURN_IF_ERROR(ReadGradient(update, at, gradient));
    std::vector<float> numbers;
    for (const uint32_t bits : update.numbers) numbers.push_back(std::bit_cast<float>(bits));
    ApplyUpdate(prediction.rules, numbers, gradient, values);
  }
  return {};
}

Status ChunkReader::ReadPart(const Prediction& prediction, uint64_t at, uint64_t from,
                             std::vector<float>& part, PredictedState& state) {
  if (from == 0) return {};
  if (from >= at) return Bad(at, "it builds on what comes after it");
  std::vector<std::byte> frame;
  PayloadChunk chunk;
  if (const Status read = Read(from, frame, chunk); !read)
    return Fail(read.error().code, PlaceOf(at) + "the state that it begins with cannot be read: " +
                                       read.error().message);
  if (chunk.offset != prediction.offset || chunk.size != prediction.size)
    return Bad(at, "it builds on a chunk of another place");
  part.resize(prediction.size / sizeof(float));
  DEJA_RETURN_IF_ERROR(Decode(chunk, from, std::as_writable_bytes(std::span(part))));
  if (CodecOf(chunk) == TensorCodec::kPrediction) {
    const auto& needed = predicted_.at(chunk.prediction)->gradient_pieces;
    state.gradient_pieces.insert(needed.begin(), needed.end());
  }
  return {};
}

Status ChunkReader::ReadGradient(const PredictedUpdate& update, uint64_t at,
                                 std::span<float> gradient) {
  const std::span<std::byte> out = std::as_writable_bytes(gradient);
  std::vector<std::byte> frame;
  std::vector<std::byte> bytes;
  size_t done = 0;
  if (update.chunks.size() > kMaxGradientPieces)
    return Bad(at, "it builds on too many pieces of gradients");
  for (size_t i = 0; i < update.chunks.size(); ++i) {
    const uint64_t from = update.chunks[i];
    if (from >= at) return Bad(at, "it builds on what comes after it");
    PayloadChunk chunk;
    if (const Status read = Read(from, frame, chunk); !read)
      return Fail(read.error().code,
                  PlaceOf(at) + "a gradient cannot be read: " + read.error().message);
    if (CodecOf(chunk) == TensorCodec::kPrediction) return Bad(at, "a gradient is a prediction");
    if (update.offsets[i] > chunk.size || update.sizes[i] > chunk.size - update.offsets[i])
      return Bad(at, "it needs more of a gradient than there is");
    bytes.resize(static_cast<size_t>(chunk.size));
    DEJA_RETURN_IF_ERROR(Decode(chunk, from, bytes));
    std::memcpy(out.data() + done, bytes.data() + update.offsets[i],
                static_cast<size_t>(update.sizes[i]));
    done += static_cast<size_t>(update.sizes[i]);
  }
  return {};
}

}  // namespace deja::format
