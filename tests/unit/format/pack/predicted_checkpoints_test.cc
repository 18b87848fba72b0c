// Checkpoints that are packed as differences to what their optimizer should have made: what comes
// back, what is refused, what is said of damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "format/log/rank_log.h"
#include "format/pack/bundle_writer.h"
#include "format/pack/optimizer_updates.h"
#include "format/payloads/prediction.h"
#include "format/reader/rank_reader.h"
#include "format/tensor/tensor_codec.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/frame_reader.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"
#include "tests/support/memory_append_file.h"
#include "tests/support/sample_trace.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr size_t kElements = 263'000;      // two chunks
constexpr size_t kBucket = 100'000;        // of the first of two buckets
constexpr uint64_t kSteps = 17;            // one more than a chain of predictions has
constexpr uint64_t kCheckpoints = kSteps;  // before each step
constexpr uint32_t kFloat32 = 7;

// A rank that trains with Adam and says so.
class PredictedCheckpoints : public testing::Test {
 protected:
  struct Options {
    double said_rate = 1e-3;         // 1e-3 is what it really is
    uint64_t step_without = kSteps;  // of this one a bucket is not kept
    uint32_t ranks = 1;              // the program divides its gradients by it, and does not say so
  };

  void Record(const Options& options) {
    options_ = options;
    fs::create_directory(dir());
    RankLogOptions log_options;
    log_options.trace_dir = dir();
    log_options.tail_dir = tails_.path();
    log_options.job_id = "00112233445566778899aabbccddeeff";
    log_options.payload_bytes = 32 << 20;
    log_ = RankLog::Create(log_options).value();
    TraceHeader header;
    header.world_size = options.ranks;
    header.level = static_cast<uint32_t>(Level::kFull);
    ASSERT_TRUE(log_->BecomeRank(header));
    sink_ = log_->ClaimSink(0);
    for (float& value : state_.parameters) value = normal_(random_) * 0.1F;
    for (uint64_t step = 0; step < kSteps; ++step) {
      log_->BeginStep(step + 1);
      Append(Step{step});
      TakeCheckpoint(step);
      Train(step);
    }
    log_->Finish();
    log_.reset();
  }

  void Train(uint64_t step) {
    for (float& value : gradient_) value = normal_(random_) * 0.01F;
    Reduced(0, kBucket, true);
    Reduced(kBucket, kElements - kBucket, step != options_.step_without);
    OptimizerUpdate said;
    said.optimizer = 2;
    said.dtype = kFloat32;
    said.count = kElements;
    said.parameters = AddressOf(state_.parameters);
    said.first_moment = AddressOf(state_.first);
    said.second_moment = AddressOf(state_.second);
    said.gradient = AddressOf(gradient_);
    said.updates = step + 1;
    said.learning_rate = options_.said_rate;
    said.beta1 = 0.9F;
    said.beta2 = 0.999F;
    said.epsilon = 1e-8F;
    said.gradient_scale = 1;
    Append(said);
    const float a = 1 / (1 - std::pow(0.9F, static_cast<float>(step + 1)));
    const float b = 1 / (1 - std::pow(0.999F, static_cast<float>(step + 1)));
    for (size_t i = 0; i < kElements; ++i) {
      float& m = state_.first[i];
      float& v = state_.second[i];
      const float mean = gradient_[i] / static_cast<float>(options_.ranks);
      m = 0.9F * m + (1 - 0.9F) * mean;
      v = 0.999F * v + (1 - 0.999F) * mean * mean;
      state_.parameters[i] -= 1e-3F * m * a / (std::sqrt(v * b) + 1e-8F);
    }
  }

  // The result of a collective.
  void Reduced(size_t begin, size_t count, bool kept) {
    CallResults results;
    results.comm = 1;
    results.comm_seq = ++operations_;
    const std::span<const float> bucket = std::span(gradient_).subspan(begin, count);
    results.outputs.push_back(Keep(bucket, kept));
    Append(results);
  }
  Tensor Keep(std::span<const float> values, bool kept) {
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    Tensor tensor;
    tensor.dtype = kFloat32;
    tensor.count = values.size();
    tensor.address = reinterpret_cast<uint64_t>(values.data());
    tensor.hash = HashOf(bytes);
    tensor.payload = static_cast<uint32_t>(kept ? PayloadState::kKept : PayloadState::kDropped);
    if (kept) {
      EXPECT_TRUE(log_->PutPayload(tensor.hash, AsBytes(bytes), 4).kept);
    }
    log_->Flush();
    return tensor;
  }
  void TakeCheckpoint(uint64_t step) {
    Checkpoint checkpoint;
    checkpoint.number = step + 1;
    checkpoint.step = step;
    for (const std::vector<float>* part : {&state_.parameters, &state_.first, &state_.second}) {
      Snapshot item;
      item.name = "a part";
      item.tensor = Keep(*part, true);
      item.checkpoint = checkpoint.number;
      Append(item);
      ++checkpoint.items;
      expected_.emplace_back(reinterpret_cast<const char*>(part->data()),
                             part->size() * sizeof(float));
    }
    Append(checkpoint);
  }
  template <typename Body>
  void Append(const Body& body) {
    const EventHead head{0, seq_++, ++time_};
    ASSERT_TRUE(sink_->Append(AsBytes(EncodeEventToString(head, body))));
  }
  static uint64_t AddressOf(const std::vector<float>& values) {
    return reinterpret_cast<uint64_t>(values.data());
  }

  void Pack(bool predict = true, std::optional<std::pair<uint64_t, uint64_t>> steps = {},
            const std::string& from = {}) {
    PackOptions options;
    options.predict = predict;
    options.steps = steps;
    options.zstd_level = predict ? 0 : 3;  // written again, too
    fs::remove(zip());
    const auto packed = WriteBundle(from.empty() ? dir() : from, zip(), options);
    ASSERT_TRUE(packed) << packed.error().message;
    bundle_ = Trace::Open(zip()).value();
  }
  const RankReader& Rank() { return **bundle_->Rank(0); }
  void ExpectAllBack(const RankReader& reader) {
    for (const std::string& bytes : expected_) {
      std::string out(bytes.size(), '\0');
      const Status read = reader.ReadPayload(HashOf(bytes), std::as_writable_bytes(std::span(out)));
      ASSERT_TRUE(read) << read.error().message;
      ASSERT_TRUE(out == bytes);
    }
  }
  void ExpectSound() {
    const VerifyReport report = Verify(*bundle_, {}).value();
    EXPECT_TRUE(report.problems.empty()) << report.problems[0].what;
    EXPECT_EQ(report.payloads_missing, 0u);
  }
  [[nodiscard]] std::string dir() const { return scratch_ / "run.deja"; }
  [[nodiscard]] std::string zip() const { return scratch_ / "run.deja.zip"; }

  TempDir scratch_;
  TempDir tails_;
  Options options_;
  std::unique_ptr<RankLog> log_;
  EventSink* sink_ = nullptr;
  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
  OptimizerState state_{std::vector<float>(kElements), std::vector<float>(kElements),
                        std::vector<float>(kElements)};
  std::vector<float> gradient_ = std::vector<float>(kElements);
  std::vector<std::string> expected_;
  std::unique_ptr<Trace> bundle_;
  uint64_t operations_ = 0;
  uint64_t seq_ = 0;
  uint64_t time_ = 0;
};

// One in this many is a keyframe.
constexpr uint64_t kPredictedCheckpoints =
    kCheckpoints - (kCheckpoints + kMaxPredictions) / (kMaxPredictions + 1);

TEST_F(PredictedCheckpoints, TakeNextToNothingAndComeBack) {
  Record({});
  Pack(false);
  const uint64_t whole = fs::file_size(zip());
  ExpectAllBack(Rank());
  EXPECT_EQ(Rank().totals().predicted.payloads, 0u);
  Pack();
  ExpectAllBack(Rank());
  ExpectSound();
  const Predicted& predicted = Rank().totals().predicted;
  // The moments of the first one are zeros, which are no news to anybody.
  EXPECT_EQ(predicted.payloads, kPredictedCheckpoints * 3);
  EXPECT_EQ(predicted.elements, kPredictedCheckpoints * 3 * kElements);
  EXPECT_EQ(predicted.exact, predicted.elements);
  EXPECT_LT(predicted.stored_bytes, kPredictedCheckpoints * 3 * 200);
  // Without them the checkpoints are nine tenths of what is left of the parts' bytes.
  EXPECT_LT(fs::file_size(zip()), whole - predicted.payload_bytes * 8 / 10);
}

TEST_F(PredictedCheckpoints, AreWholeInACopyOfTheCopy) {
  Record({});
  Pack();
  const std::string copy = scratch_ / "copy.deja.zip";
  fs::copy_file(zip(), copy);
  Pack(false, {}, copy);
  ExpectAllBack(Rank());
  ExpectSound();
  EXPECT_EQ(Rank().totals().predicted.payloads, 0u);
  Pack(true, {}, copy);
  ExpectAllBack(Rank());
  EXPECT_EQ(Rank().totals().predicted.payloads, kPredictedCheckpoints * 3);
}

TEST_F(PredictedCheckpoints, AProgramThatSaysSomethingElseLosesNothing) {
  Record({.said_rate = 1.1e-3});
  Pack();
  ExpectAllBack(Rank());
  ExpectSound();
  const Predicted& predicted = Rank().totals().predicted;
  EXPECT_GE(predicted.payloads, kPredictedCheckpoints * 2) << "the moments do not depend on it";
  EXPECT_LT(predicted.exact, predicted.elements);
}

TEST_F(PredictedCheckpoints, MeansThatTheProgramMakesFromSums) {
  Record({.ranks = 4});
  Pack();
  ExpectAllBack(Rank());
  ExpectSound();
  const Predicted& predicted = Rank().totals().predicted;
  EXPECT_EQ(predicted.payloads, kPredictedCheckpoints * 3);
  EXPECT_EQ(predicted.exact, predicted.elements);
}

TEST_F(PredictedCheckpoints, AThirdOfANumberIsNotAlwaysTheNumberTimesAThird) {
  Record({.ranks = 3});
  Pack();
  ExpectAllBack(Rank());
  ExpectSound();
  const Predicted& predicted = Rank().totals().predicted;
  EXPECT_EQ(predicted.payloads, kPredictedCheckpoints * 3);
  EXPECT_GT(predicted.exact, predicted.elements / 2);
  EXPECT_LT(predicted.exact, predicted.elements);
}

TEST_F(PredictedCheckpoints, ACheckpointWithoutItsGradientIsKept) {
  Record({.step_without = 9});
  Pack();
  ExpectAllBack(Rank());
  ExpectSound();
  // The chain begins again after it.
  EXPECT_EQ(Rank().totals().predicted.payloads, (kCheckpoints - 2) * 3);
  EXPECT_EQ(Rank().totals().predicted.exact, Rank().totals().predicted.elements);
}

TEST_F(PredictedCheckpoints, FollowFromTheStepsThatAreThere) {
  Record({});
  Pack(true, std::pair<uint64_t, uint64_t>{7, 10});
  ExpectSound();
  // Those at steps 7 to 10, of which the first has nothing before it.
  EXPECT_EQ(Rank().totals().predicted.payloads, 9u);
  for (size_t i = 3 * 7; i < 3 * 11; ++i)
    EXPECT_EQ(Rank().PayloadSize(HashOf(expected_[i])), kElements * sizeof(float));
}

TEST_F(PredictedCheckpoints, ABundleOfALimitedSizeHasNone) {
  fs::create_directory(dir());
  PackOptions options;
  options.predict = true;
  options.max_bytes = 1 << 20;
  const auto packed = WriteBundle(dir(), zip(), options);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(zip()));
}

// The frames of a folder's payload file: where they are, and of what type.
std::vector<std::pair<uint64_t, FrameType>> FramesOf(const std::string& path) {
  const auto file = OpenReadFile(path).value();
  FrameReader reader(*file);
  std::vector<std::pair<uint64_t, FrameType>> frames;
  EXPECT_TRUE(reader.CheckMagic());
  std::vector<std::byte> payload;
  for (FrameResult frame = reader.Next(payload); frame.outcome == FrameOutcome::kRecord;
       frame = reader.Next(payload))
    frames.emplace_back(frame.offset, frame.type);
  return frames;
}

class DamagedPredictions : public PredictedCheckpoints {
 protected:
  // The files of a bundle with predictions, to be damaged.
  void SetUp() override {
    Record({});
    Pack();
    fs::copy(bundle_->directory(), copy(), fs::copy_options::recursive);
  }
  [[nodiscard]] std::string copy() const { return scratch_ / "copy.deja"; }
  [[nodiscard]] std::string payloads() const { return copy() + "/rank-00000/payloads.deja"; }
  void Damage(uint64_t at) {
    auto bytes = samples::FileBytes(payloads());
    bytes[at] ^= std::byte{1};
    samples::WriteFileBytes(payloads(), bytes);
  }
  VerifyReport Verified() { return Verify(*Trace::Open(copy()).value(), {}).value(); }
  // How many of the parts of checkpoints can be read.
  uint64_t Readable() {
    const auto reader = RankReader::Open(copy() + "/rank-00000").value();
    uint64_t readable = 0;
    for (const std::string& bytes : expected_)
      readable += reader->StreamPayload(HashOf(bytes), [](auto) {}) ? 1 : 0;
    return readable;
  }
};

TEST_F(DamagedPredictions, AreFoundWithoutIndexAndFooter) {
  fs::resize_file(copy() + "/rank-00000/events.deja",
                  fs::file_size(copy() + "/rank-00000/events.deja") - 20);
  const auto reader = RankReader::Open(copy() + "/rank-00000").value();
  EXPECT_NE(reader->end().state, EndState::kCleanEnd);
  ExpectAllBack(*reader);
}

TEST_F(DamagedPredictions, VerifyNamesWhatAPredictionTakesWithIt) {
  uint64_t prediction = 0;
  for (const auto& [at, type] : FramesOf(payloads()))
    if (type == FrameType::kPrediction) prediction = at;  // the last one: nothing builds on it
  ASSERT_NE(prediction, 0u);
  Damage(prediction + kFrameHeaderBytes + 10);
  const VerifyReport report = Verified();
  ASSERT_GE(report.problems.size(), 4u) << "the frame, and three payloads";
  size_t payloads = 0;
  for (const VerifyProblem& problem : report.problems) {
    const bool gone = problem.what.find("is referred to and not there") != std::string::npos;
    payloads += problem.what.find("payload ") == 0 && !gone ? 1 : 0;
  }
  EXPECT_EQ(payloads, 3u);
  EXPECT_EQ(Readable(), expected_.size() - 3);
}

TEST_F(DamagedPredictions, ADamagedKeyframeTakesItsChain) {
  const auto frames = FramesOf(payloads());
  uint64_t keyframe = 0;  // the first chunk in the file: of the parameters of the first checkpoint
  for (const auto& [at, type] : frames)
    if (type == FrameType::kPayloadChunk && keyframe == 0) keyframe = at;
  Damage(keyframe + 1000);
  EXPECT_FALSE(Verified().problems.empty());
  const uint64_t readable = Readable();
  EXPECT_LT(readable, expected_.size() - kMaxPredictions);
  EXPECT_GE(readable, 3 * (kCheckpoints - kMaxPredictions - 1)) << "those of the next keyframe";
  // Without an index the same are missing.
  fs::resize_file(copy() + "/rank-00000/events.deja",
                  fs::file_size(copy() + "/rank-00000/events.deja") - 20);
  EXPECT_LE(Readable(), readable);
  EXPECT_GE(Readable(), 3 * (kCheckpoints - kMaxPredictions - 1));
}

// A payload file with predictions that make no sense.
class HostilePredictions : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 2000;

  uint64_t Add(const std::string& name, uint32_t codec = 0, uint64_t prediction = 0,
               uint32_t state = 1, uint64_t offset = 0) {
    const std::string zeros(kBytes, '\0');
    const EncodedTensor planes = EncodeTensor(AsBytes(zeros), 4, scratch_);
    PayloadChunk chunk;
    chunk.hash = HashOf(name);
    chunk.total_size = kBytes + offset;
    chunk.offset = offset;
    chunk.size = kBytes;
    chunk.codec = codec;
    chunk.element_size = 4;
    chunk.data = codec == 0 ? std::string_view(zeros) : AsText(planes.bytes);
    chunk.base = prediction;
    chunk.prediction = prediction;
    chunk.state = state;
    return writer_->Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk))).value();
  }
  // Zeros make zeros.
  static Prediction Sound(uint64_t parameters, uint64_t gradient) {
    Prediction prediction;
    prediction.size = kBytes;
    prediction.rules = {static_cast<uint32_t>(PredictionMethod::kSgd), 0, 0, 0, 5};
    prediction.parameters = parameters;
    PredictedUpdate& update = prediction.updates.emplace_back();
    update.numbers.assign(kSgdNumbers, 0);
    update.chunks = {gradient};
    update.offsets = {0};
    update.sizes = {kBytes};
    return prediction;
  }
  uint64_t Predict(const Prediction& prediction) {
    return writer_->Write(FrameType::kPrediction, AsBytes(EncodeToString(prediction))).value();
  }
  std::string Error(const std::string& name) {
    samples::WriteSampleRank(rank_, folder_.path());
    const auto reader = RankReader::Open(folder_.path());
    EXPECT_TRUE(reader);
    const Status read = (*reader)->StreamPayload(HashOf(name), [](std::span<const std::byte>) {});
    return read ? "" : read.error().message;
  }

  const std::string zeros_ = std::string(kBytes, '\0');
  samples::ScratchFolder folder_;
  samples::SampleRank rank_ = samples::MakeSampleRank({.finished = false});
  std::vector<std::byte> scratch_;
  std::unique_ptr<FrameWriter> writer_ =
      std::make_unique<FrameWriter>(std::make_unique<MemoryAppendFile>(&rank_.payloads_file));
};

TEST_F(HostilePredictions, InALongChain) {
  const uint64_t gradient = Add("gradient");
  uint64_t at = Add("first");
  for (uint32_t i = 0; i < kMaxPredictions; ++i) {
    const std::string name = i + 1 == kMaxPredictions ? zeros_ : "between " + std::to_string(i);
    at = Add(name, 5, Predict(Sound(at, gradient)));
  }
  EXPECT_EQ(Error(zeros_), "") << "so many may be";
  Add("too many", 5, Predict(Sound(at, gradient)));
  EXPECT_THAT(Error("too many"), HasSubstr("too many predictions"));
}

TEST_F(HostilePredictions, AStateThatWasKeptCountsAsIfItWereComputed) {
  const uint64_t gradient = Add("gradient");
  uint64_t at = Add("first");
  for (uint32_t i = 0; i < kMaxPredictions - 1; ++i)
    at = Add("between " + std::to_string(i), 5, Predict(Sound(at, gradient)));
  Add(zeros_, 5, Predict(Sound(at, gradient)));
  at = Add("last", 5, Predict(Sound(at, gradient)));
  Add("too many", 5, Predict(Sound(at, gradient)));
  samples::WriteSampleRank(rank_, folder_.path());
  const auto reader = RankReader::Open(folder_.path());
  ASSERT_TRUE(reader);
  const auto stream = [&](const std::string& name) {
    return (*reader)->StreamPayload(HashOf(name), [](std::span<const std::byte>) {});
  };
  ASSERT_TRUE(stream(zeros_));
  for (int i = 0; i < 2; ++i) {
    const Status read = stream("too many");
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("too many predictions"));
  }
}

TEST_F(HostilePredictions, PredictionsOfTooManyGradients) {
  const uint64_t gradient = Add("gradient");
  const uint64_t first = Add("first");
  Prediction prediction = Sound(first, gradient);
  prediction.updates.resize(kMaxGradientPieces + 1, prediction.updates.front());
  Add("too many", 5, Predict(prediction));
  EXPECT_THAT(Error("too many"), HasSubstr("too many pieces of gradients"));
}

TEST_F(HostilePredictions, OnWhatComesLaterOrIsSomethingElse) {
  const uint64_t gradient = Add("gradient");
  const uint64_t first = Add("first");
  const uint64_t moved = Add("moved", 0, 0, 0, 8);
  const uint64_t later = rank_.payloads_file.size() + 1'000'000;
  const uint64_t sound = Predict(Sound(first, gradient));
  const uint64_t predicted = Add(zeros_, 5, sound);
  const std::pair<const char*, Prediction> bad[] = {
      {"state from later", Sound(later, gradient)},
      {"gradient from later", Sound(first, later)},
      {"state from another place", Sound(moved, gradient)},
      {"state from a prediction's frame", Sound(sound, gradient)},
      {"gradient from a prediction", Sound(first, predicted)},
      {"state from inside of a frame", Sound(first + 3, gradient)},
  };
  for (const auto& [name, prediction] : bad) Add(name, 5, Predict(prediction));
  Prediction outside = Sound(first, gradient);
  outside.updates[0].offsets[0] = 4;
  Add("more of a gradient", 5, Predict(outside));
  Add("of itself", 5, rank_.payloads_file.size());
  Add("of a chunk", 5, first);
  Add("of nothing", 5, 0);
  Add("another part", 5, sound, 2);
  Add("no part", 5, sound, 7);
  EXPECT_EQ(Error(zeros_), "");
  for (const char* name : {"state from later", "gradient from later", "state from another place",
                           "state from a prediction's frame", "gradient from a prediction",
                           "state from inside of a frame", "more of a gradient", "of itself",
                           "of a chunk", "of nothing", "another part", "no part"})
    EXPECT_NE(Error(name), "") << name;
  EXPECT_THAT(Error("another part"), HasSubstr("is not one of its elements"));
}

TEST_F(HostilePredictions, DifferencesDoNotBuildOnThem) {
  const uint64_t gradient = Add("gradient");
  const uint64_t predicted = Add(zeros_, 5, Predict(Sound(Add("first"), gradient)));
  Add("difference", 4, predicted);
  EXPECT_THAT(Error("difference"), HasSubstr("builds on a prediction"));
}

}  // namespace
}  // namespace deja::format
