// Payloads that are written as differences to the one before of their series, from PutPayload to
// readers.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/tensor/payload_bases.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"
#include "tests/support/memory_append_file.h"
#include "tests/support/sample_trace.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

constexpr uint64_t kSteps = 40;
constexpr size_t kElements = 300'000;

// Parameters in bfloat16 as they change from step to step: most not at all.
class Parameters {
 public:
  Parameters() : values_(kElements) {
    for (float& value : values_) value = normal_(random_) * 0.02f;
  }
  void Step() {
    for (float& value : values_) value += normal_(random_) * 3e-6f;
  }
  [[nodiscard]] std::string Bytes() const {
    std::string bytes;
    for (const float value : values_) {
      const auto half = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
    }
    return bytes;
  }

 private:
  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
  std::vector<float> values_;
};

class DifferencesTest : public ::testing::Test {
 protected:
  void Record(uint64_t base_memory, const WindowOptions& window = {}) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = "00112233445566778899aabbccddeeff";
    options.payload_bytes = 8 << 20;
    options.base_memory = base_memory;
    options.window = window;
    auto log = RankLog::Create(options);
    ASSERT_TRUE(log) << log.error().message;
    ASSERT_TRUE((*log)->BecomeRank({}));
    Parameters parameters;
    for (uint64_t step = 1; step <= kSteps; ++step) {
      (*log)->BeginStep(step);
      payloads_.push_back(parameters.Bytes());
      const std::string& bytes = payloads_.back();
      ASSERT_TRUE((*log)->PutPayload(HashOf(bytes), AsBytes(bytes), 2, 5).kept);
      (*log)->Flush();
      parameters.Step();
    }
    (*log)->Finish();
  }
  [[nodiscard]] std::string Folder() const { return dir_ / "rank-00000"; }
  [[nodiscard]] std::unique_ptr<RankReader> Open() const {
    auto reader = RankReader::Open(Folder());
    EXPECT_TRUE(reader) << reader.error().message;
    return std::move(*reader);
  }
  static std::string Read(const RankReader& reader, const Hash128& hash) {
    std::string bytes;
    const Status read =
        reader.StreamPayload(hash, [&](std::span<const std::byte> part) { bytes += AsText(part); });
    return read ? bytes : read.error().message;
  }

  TempDir dir_;
  TempDir tails_;
  std::vector<std::string> payloads_;
};

TEST_F(DifferencesTest, ParametersThatChangeLittleTakeLittle) {
  Record(8 << 20);
  const auto reader = Open();
  EXPECT_EQ(reader->end().state, EndState::kCleanEnd);
  for (const std::string& bytes : payloads_) ASSERT_TRUE(Read(*reader, HashOf(bytes)) == bytes);
  const RankScan scan = ScanRank(Folder(), false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_EQ(scan.payloads.size(), kSteps);
  // One in this many stands for itself.
  const uint64_t alone = (kSteps + kMaxDifferences) / (kMaxDifferences + 1);
  EXPECT_EQ(scan.differences, kSteps - alone);
  EXPECT_LT(std::filesystem::file_size(Folder() + "/payloads.deja"),
            kSteps * kElements * sizeof(uint16_t) / 4);
}

TEST_F(DifferencesTest, WithoutMemoryThereAreNone) {
  Record(0);
  EXPECT_EQ(ScanRank(Folder(), false).differences, 0u);
  const auto reader = Open();
  for (const std::string& bytes : payloads_) ASSERT_TRUE(Read(*reader, HashOf(bytes)) == bytes);
}

TEST_F(DifferencesTest, AWindowsSegmentsNeedNoOtherOnes) {
  WindowOptions window;
  window.keep_steps = 8;
  window.shared_bytes = 0;
  Record(8 << 20, window);
  const auto reader = Open();
  EXPECT_FALSE(reader->totals().dropped.empty());
  for (uint64_t step = kSteps - 8; step < kSteps; ++step)
    ASSERT_TRUE(Read(*reader, HashOf(payloads_[step])) == payloads_[step]) << step;
}

// A payload file with chunks that say that they build on something.
class HostileDifferences : public ::testing::Test {
 protected:
  // Appends a chunk of 2,000 bytes that builds on `base` and returns where it is.
  uint64_t Add(const std::string& name, uint32_t codec, uint64_t base, uint64_t offset = 0) {
    const std::string zeros(2000, '\0');
    const EncodedTensor planes = EncodeTensor(AsBytes(zeros), 2, scratch_);
    PayloadChunk chunk;
    chunk.hash = HashOf(name);
    chunk.total_size = 2000 + offset;
    chunk.offset = offset;
    chunk.size = 2000;
    chunk.codec = codec;
    chunk.element_size = 2;
    chunk.data = codec == 0 ? std::string_view(zeros) : AsText(planes.bytes);
    chunk.base = base;
    return writer_->Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk))).value();
  }
  std::string Error(const std::string& name) {
    samples::WriteSampleRank(rank_, folder_.path());
    const auto reader = RankReader::Open(folder_.path());
    EXPECT_TRUE(reader);
    const Status read = (*reader)->StreamPayload(HashOf(name), [](std::span<const std::byte>) {});
    return read ? "" : read.error().message;
  }

  samples::ScratchFolder folder_;
  samples::SampleRank rank_ = samples::MakeSampleRank({.finished = false});
  std::vector<std::byte> scratch_;
  std::unique_ptr<FrameWriter> writer_ =
      std::make_unique<FrameWriter>(std::make_unique<MemoryAppendFile>(&rank_.payloads_file));
};

TEST_F(HostileDifferences, ToItselfOrToALaterOne) {
  const uint64_t at = rank_.payloads_file.size();
  EXPECT_EQ(Add("itself", 3, at), at);
  Add("later", 3, at + 1'000'000);
  Add("nothing", 3, 0);
  Add("inside", 3, at + 5);
  for (const char* name : {"itself", "later", "nothing", "inside"}) EXPECT_NE(Error(name), "");
}

TEST_F(HostileDifferences, ToAnotherPlace) {
  const uint64_t other = Add("other", 0, 0, 8);
  Add("moved", 3, other);
  EXPECT_NE(Error("moved"), "");
}

TEST_F(HostileDifferences, InALongChain) {
  const std::string zeros(2000, '\0');
  uint64_t at = Add("first", 0, 0);
  for (uint32_t i = 0; i < kMaxDifferences; ++i)
    at = Add(i + 1 == kMaxDifferences ? zeros : "between " + std::to_string(i), 3, at);
  EXPECT_EQ(Error(zeros), "");
  Add("too many", 3, at);
  EXPECT_NE(Error("too many"), "");
}

TEST_F(HostileDifferences, DifferencesOfTwoKinds) {
  const uint64_t first = Add("first", 0, 0);
  const uint64_t xored = Add("xored", 3, first);
  const uint64_t subtracted = Add("subtracted", 4, first);
  Add("mixed", 4, xored);
  Add("mixed, too", 3, subtracted);
  EXPECT_NE(Error("mixed").find("another kind"), std::string::npos) << Error("mixed");
  EXPECT_NE(Error("mixed, too").find("another kind"), std::string::npos);
}

TEST_F(HostileDifferences, AChunkThatBuildsOnADamagedOneIsNotThere) {
  const uint64_t first = Add("first", 0, 0);
  Add("xored", 3, first);
  Add("subtracted", 4, first);
  EXPECT_NE(Error("subtracted").find("hash"), std::string::npos) << "its bytes are not the name's";
  rank_.payloads_file[first + 40] ^= std::byte{1};
  for (const char* name : {"xored", "subtracted"})
    EXPECT_NE(Error(name).find("not completely in the trace"), std::string::npos) << Error(name);
}

}  // namespace
}  // namespace deja::format
