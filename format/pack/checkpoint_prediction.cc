#include "format/pack/checkpoint_prediction.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "common/os/file.h"
#include "format/tensor/element_difference.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/frame_format.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

constexpr size_t kStateParts = 3;
constexpr uint64_t kSampleBytes = 64 << 10;
constexpr double kMostlyExact = 0.9;  // of a sample: what is said of the gradients is right
constexpr DifferenceKind kOfFloats{TensorCodec::kElementDifference, sizeof(float)};

StatePart PartAt(size_t index) {
  return static_cast<StatePart>(index + 1);
}

uint64_t CountSame(std::span<const float> a, std::span<const float> b) {
  uint64_t same = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    same += std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i]) ? 1 : 0;
  return same;
}

}  // namespace

// The first elements of a change.
struct CheckpointPredictor::Sample {
  OptimizerState before;
  OptimizerState after;
  std::vector<std::vector<float>> gradients;

  // How much of it is what comes of this order.
  [[nodiscard]] uint64_t Score(const Change& change, const Order& order) const {
    OptimizerState state = before;
    for (size_t i = 0; i < gradients.size(); ++i) {
      std::vector<float> gradient = gradients[i];
      const std::vector<float> numbers = order.NumbersOf(change.recorded.updates[i].said);
      if (!IsEnough(order.rules, numbers, !state.parameters.empty(), !state.first.empty(),
                    !state.second.empty()))
        return 0;
      ApplyUpdate(order.rules, numbers, gradient, state);
    }
    return CountSame(state.parameters, after.parameters) + CountSame(state.first, after.first) +
           CountSame(state.second, after.second);
  }
  [[nodiscard]] uint64_t size() const {
    return after.parameters.size() + after.first.size() + after.second.size();
  }
};

std::vector<float> CheckpointPredictor::Order::NumbersOf(const OptimizerUpdate& said) const {
  OptimizerUpdate scaled = said;
  scaled.gradient_scale *= scale;
  return format::NumbersOf(scaled, rules, in_single);
}

CheckpointPredictor::CheckpointPredictor(const RankReader& reader, std::string path)
    : reader_(reader), path_(std::move(path)) {
  for (StateChange& recorded : FindStateChanges(reader)) {
    const size_t number = changes_.size();
    for (size_t i = 0; i < kStateParts; ++i) {
      // What did not change is there already.
      if (!recorded.after[i].IsZero() && recorded.after[i] != recorded.before[i])
        parts_.try_emplace(recorded.after[i], Place{number, PartAt(i)});
    }
    changes_.push_back({std::move(recorded), {}, {}});
  }
}

bool CheckpointPredictor::AddGradient(const RecordedUpdate& update, uint64_t offset, uint64_t size,
                                      PredictedUpdate& predicted) const {
  uint64_t begin = 0;  // of a range, in the gradient
  for (const GradientRange& range : update.gradient) {
    const uint64_t from = std::max(begin, offset);
    const uint64_t to = std::min(begin + range.size, offset + size);
    begin += range.size;
    if (from >= to) continue;
    const auto payload = written_.find(range.payload);
    if (payload == written_.end()) return false;
    uint64_t at = range.offset + (from - (begin - range.size));  // in the payload
    for (uint64_t left = to - from; left != 0;) {
      const uint64_t chunk = at / kPayloadChunkBytes;
      const uint64_t in_chunk = at % kPayloadChunkBytes;
      const uint64_t some = std::min<uint64_t>(left, kPayloadChunkBytes - in_chunk);
      if (chunk >= payload->second.chunk_offsets.size()) return false;
      predicted.chunks.push_back(payload->second.chunk_offsets[chunk]);
      predicted.offsets.push_back(in_chunk);
      predicted.sizes.push_back(some);
      at += some;
      left -= some;
    }
  }
  return begin >= offset + size;
}

std::optional<Prediction> CheckpointPredictor::Predict(const Change& change, uint64_t offset,
                                                       uint64_t size) const {
  Prediction prediction;
  prediction.offset = offset;
  prediction.size = size;
  if (change.order) prediction.rules = change.order->rules;
  uint64_t* const places[] = {&prediction.parameters, &prediction.first_moment,
                              &prediction.second_moment};
  for (size_t i = 0; i < kStateParts; ++i) {
    const Hash128& payload = change.recorded.before[i];
    if (payload.IsZero()) continue;
    const auto written = written_.find(payload);
    const uint64_t chunk = offset / kPayloadChunkBytes;
    if (written == written_.end() || chunk >= written->second.chunk_offsets.size())
      return std::nullopt;
    *places[i] = written->second.chunk_offsets[chunk];
  }
  if (change.recorded.updates.size() > kMaxGradientPieces) return std::nullopt;
  for (const RecordedUpdate& update : change.recorded.updates) {
    PredictedUpdate& predicted = prediction.updates.emplace_back();
    if (!AddGradient(update, offset, size, predicted)) return std::nullopt;
    if (!change.order) continue;
    for (const float number : change.order->NumbersOf(update.said))
      predicted.numbers.push_back(std::bit_cast<uint32_t>(number));
  }
  return prediction;
}

// ---- The order in which the program computes

bool CheckpointPredictor::ReadSample(const Change& change, Sample& sample) const {
  const uint64_t bytes = change.recorded.count * sizeof(float);
  const uint64_t chunk = std::min<uint64_t>(bytes, kPayloadChunkBytes);
  const uint64_t some = std::min(bytes, kSampleBytes);
  const auto file = OpenReadFile(path_);
  const std::optional<Prediction> prediction = Predict(change, 0, chunk);
  if (!file || !prediction) return false;
  const auto take = [some](std::span<const std::byte> from, std::vector<float>& to) {
    to.resize(some / sizeof(float));
    if (from.size() < some) return false;
    std::memcpy(to.data(), from.data(), some);
    return true;
  };
  const std::pair<uint64_t, std::vector<float>*> before[] = {
      {prediction->parameters, &sample.before.parameters},
      {prediction->first_moment, &sample.before.first},
      {prediction->second_moment, &sample.before.second}};
  std::vector<float>* const after[] = {&sample.after.parameters, &sample.after.first,
                                       &sample.after.second};
  for (size_t i = 0; i < kStateParts; ++i) {
    if (change.recorded.after[i].IsZero()) continue;
    std::vector<std::byte> read;
    if (!ChunkReader(**file, &states_, 0).ReadBytes(before[i].first, read) ||
        !take(read, *before[i].second))
      return false;
    read.clear();
    const Status streamed =
        reader_.StreamPayload(change.recorded.after[i], [&](std::span<const std::byte> part) {
          if (read.size() < some) read.insert(read.end(), part.begin(), part.end());
        });
    if (!streamed || !take(read, *after[i])) return false;
  }
  std::vector<float> gradient(chunk / sizeof(float));
  for (const PredictedUpdate& update : prediction->updates) {
    if (!ChunkReader(**file).ReadGradient(update, file->get()->size(), gradient)) return false;
    sample.gradients.emplace_back(gradient.begin(),
                                  gradient.begin() + static_cast<ptrdiff_t>(some / sizeof(float)));
  }
  return true;
}

CheckpointPredictor::Found CheckpointPredictor::BestOrder(const Change& change,
                                                          const Sample& sample, double scale) {
  const OptimizerUpdate& said = change.recorded.updates.front().said;
  const bool sgd = said.optimizer == 1;
  Order best;
  best.scale = scale;
  best.rules.method = static_cast<uint32_t>(sgd ? PredictionMethod::kSgd : PredictionMethod::kAdam);
  // For SGD without a moment.
  if (sgd && sample.before.first.empty()) best.rules.parameters = kSgdParameterRules - 1;
  uint64_t most = sample.Score(change, best);
  const auto try_all = [&](uint32_t UpdateRules::*rule, uint32_t rules) {
    Order tried = best;
    for (uint32_t i = 0; i < rules && most < sample.size(); ++i) {
      tried.rules.*rule = i;
      const uint64_t score = sample.Score(change, tried);
      if (score <= most) continue;
      most = score;
      best = tried;
    }
  };
  Order best_of_all = best;
  uint64_t most_of_all = 0;
  const Order first_order = best;
  const uint32_t gradient_rules = said.weight_decay != 0 ? kGradientRules : 1;
  for (uint32_t i = 0; i < 2 * gradient_rules && most_of_all < sample.size(); ++i) {
    best = first_order;
    best.in_single = i % 2 == 0;
    best.rules.gradient = i / 2;
    most = sample.Score(change, best);
    // What a moment is does not depend on the parameters, but for the decay: one after the other.
    try_all(&UpdateRules::first, kFirstRules);
    if (!sgd) try_all(&UpdateRules::second, kSecondRules);
    try_all(&UpdateRules::parameters, sgd ? kSgdParameterRules : kAdamParameterRules);
    if (most > most_of_all) best_of_all = best;
    most_of_all = std::max(most, most_of_all);
  }
  return {best_of_all, static_cast<double>(most_of_all) / static_cast<double>(sample.size())};
}

std::optional<CheckpointPredictor::Order> CheckpointPredictor::FindOrder(const Change& change) {
  constexpr double kAsGood = 0.999;  // of the share that was exact where the order was found
  const uint32_t optimizer =
      change.recorded.updates.empty() ? 0 : change.recorded.updates.front().said.optimizer;
  if (optimizer == 0 || optimizer > 3) return std::nullopt;
  Sample sample;
  if (!ReadSample(change, sample)) return std::nullopt;
  if (last_found_) {
    const auto exact = static_cast<double>(sample.Score(change, last_found_->order));
    if (exact >= kAsGood * last_found_->share * static_cast<double>(sample.size()))
      return last_found_->order;
  }
  Found found = BestOrder(change, sample, 1);
  // The program may have divided the sums itself.
  const uint32_t ranks = reader_.header().world_size;
  if (found.share < kMostlyExact && ranks > 1) {
    const Found of_means = BestOrder(change, sample, 1.0 / ranks);
    if (of_means.share > found.share) found = of_means;
  }
  if (found.share == 0) return std::nullopt;
  last_found_ = found;
  return found.order;
}

// ---- Writing

Result<bool> CheckpointPredictor::MakePredicted(const Place& place,
                                                std::span<const std::byte> bytes,
                                                size_t whole_bytes, PayloadChunk& chunk,
                                                FrameWriter& out) {
  constexpr double kMustSave = 0.9;
  Change& change = changes_[place.change];
  const std::optional<Prediction> prediction = Predict(change, chunk.offset, bytes.size());
  const auto file = OpenReadFile(path_);
  if (!prediction || !file) return false;
  OptimizerState state;
  // A keyframe: the chain is as long as it may be.
  if (!ChunkReader(**file, &states_, 0).Predict(*prediction, out.offset(), state)) return false;
  const std::vector<float>* const part = state.Part(place.part);
  if (part == nullptr || part->size() * sizeof(float) != bytes.size()) return false;
  const std::span<const std::byte> predicted = std::as_bytes(std::span(*part));
  difference_.resize(bytes.size());
  MakeDifference(kOfFloats, bytes, predicted, difference_);
  const EncodedTensor encoded = EncodeTensor(difference_, sizeof(float), planes_);
  if (encoded.codec != TensorCodec::kPlanes ||
      static_cast<double>(encoded.bytes.size()) > kMustSave * static_cast<double>(whole_bytes))
    return false;
  const auto [frame, is_new] = change.frames.try_emplace(chunk.offset, 0);
  if (is_new) {
    DEJA_ASSIGN_OR_RETURN(frame->second,
                          out.Write(FrameType::kPrediction, AsBytes(EncodeToString(*prediction))));
  }
  chunk.codec = static_cast<uint32_t>(TensorCodec::kPrediction);
  chunk.element_size = sizeof(float);
  chunk.prediction = frame->second;
  chunk.state = static_cast<uint32_t>(place.part);
  chunk.data = AsText(encoded.bytes);
  uint64_t exact = 0;
  for (size_t at = 0; at < bytes.size(); at += sizeof(float))
    exact += std::memcmp(bytes.data() + at, predicted.data() + at, sizeof(float)) == 0 ? 1 : 0;
  totals_.elements += part->size();
  totals_.exact += exact;
  totals_.stored_bytes += encoded.bytes.size();
  return true;
}

Result<uint64_t> CheckpointPredictor::WriteChunk(const Place& place,
                                                 std::span<const std::byte> bytes,
                                                 PayloadChunk& chunk, FrameWriter& out) {
  const EncodedTensor whole = EncodeTensor(bytes, sizeof(float), whole_);
  chunk.size = bytes.size();
  DEJA_ASSIGN_OR_RETURN(const bool predicted,
                        MakePredicted(place, bytes, whole.bytes.size(), chunk, out));
  if (!predicted) {
    chunk.codec = static_cast<uint32_t>(whole.codec);
    chunk.element_size = sizeof(float);
    chunk.data = AsText(whole.bytes);
    chunk.prediction = chunk.state = 0;
  }
  Result<uint64_t> at = out.Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk)));
  chunk.offset += bytes.size();
  return at;
}

Result<std::optional<PayloadInfo>> CheckpointPredictor::Copy(const Hash128& hash,
                                                             uint64_t total_size,
                                                             FrameWriter& out) {
  const Place& place = parts_.at(hash);
  Change& change = changes_[place.change];
  if (total_size != change.recorded.count * sizeof(float)) return std::nullopt;
  if (!change.order) change.order = FindOrder(change);
  if (!change.order) return std::nullopt;
  const Predicted before = totals_;
  PayloadInfo info;
  info.hash = hash;
  info.total_size = total_size;
  PayloadChunk chunk;
  chunk.hash = hash;
  chunk.total_size = total_size;
  std::vector<std::byte> pending;
  Status written;
  const auto flush = [&] {
    const Result<uint64_t> at = WriteChunk(place, pending, chunk, out);
    if (at)
      info.chunk_offsets.push_back(*at);
    else
      written = tl::unexpected<Error>(at.error());
    pending.clear();
  };
  const Status streamed = reader_.StreamPayload(hash, [&](std::span<const std::byte> bytes) {
    while (!bytes.empty() && written) {
      const size_t some = std::min(bytes.size(), kPayloadChunkBytes - pending.size());
      pending.insert(pending.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(some));
      bytes = bytes.subspan(some);
      if (pending.size() == kPayloadChunkBytes) flush();
    }
  });
  if (streamed && written && !pending.empty()) flush();
  DEJA_RETURN_IF_ERROR(written);
  if (!streamed) {
    totals_ = before;
    return std::nullopt;
  }
  const uint64_t elements = totals_.elements - before.elements;
  if (elements != 0) {
    ++totals_.payloads;
    totals_.payload_bytes += total_size;
  }
  return std::optional<PayloadInfo>(std::move(info));
}

}  // namespace deja::format
