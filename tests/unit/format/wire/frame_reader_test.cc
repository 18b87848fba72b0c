// One test a branch of the reader, in the manner of leveldb's log_test. Each has what is written,
// what is done to the bytes, and what the reader says.
#include "format/wire/frame_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/wire/frame_writer.h"
#include "format/wire/wire.h"
#include "tests/support/memory_append_file.h"

namespace deja::format {
namespace {

using testing::HasSubstr;

class FrameReaderTest : public testing::Test {
 protected:
  FrameReaderTest() : writer_(std::make_unique<MemoryAppendFile>(&bytes_)) {}

  uint64_t Write(const std::string& payload, FrameType type = FrameType::kEvents) {
    return writer_.Write(type, AsBytes(payload)).value();
  }
  void Finish() { ASSERT_TRUE(writer_.WriteFooter(Footer{})); }

  void Start() {
    file_ = MakeMemoryFile("test.deja", bytes_);
    reader_ = std::make_unique<FrameReader>(*file_);
  }

  // "record:PAYLOAD", "footer", "end", "torn:N", "corrupt:N".
  std::string Read() {
    if (reader_ == nullptr) Start();
    std::vector<std::byte> payload;
    last_ = reader_->Next(payload);
    switch (last_.outcome) {
      case FrameOutcome::kRecord:
        if (last_.type == FrameType::kFooter) return "footer";
        return "record:" + std::string(AsText(payload));
      case FrameOutcome::kCleanEnd:
        return "end";
      case FrameOutcome::kTornTail:
        return "torn:" + std::to_string(last_.size);
      case FrameOutcome::kCorrupt:
        return "corrupt:" + std::to_string(last_.size);
    }
    return "?";
  }

  // Recomputes the header's checksum at `offset` after a test has changed the header.
  void Reseal(uint64_t offset) {
    const uint64_t sum = Checksum(std::span(bytes_).subspan(offset, 24));
    std::memcpy(&bytes_[offset + 24], &sum, sizeof sum);
  }
  void Set32(uint64_t at, uint32_t value) { std::memcpy(&bytes_[at], &value, sizeof value); }

  std::vector<std::byte> bytes_;
  FrameWriter writer_;
  std::unique_ptr<ReadFile> file_;
  std::unique_ptr<FrameReader> reader_;
  FrameResult last_;
};

std::string Noise(size_t size, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST_F(FrameReaderTest, RecordsComeBackInOrderAndThenTheCleanEnd) {
  Write("foo");
  Write("");
  Write(std::string(100'000, 'x'));
  Write(Noise(100'000));
  Finish();
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "record:");
  EXPECT_EQ(Read(), "record:" + std::string(100'000, 'x'));
  EXPECT_EQ(Read(), "record:" + Noise(100'000));
  EXPECT_EQ(Read(), "footer");
  EXPECT_EQ(Read(), "end");
  EXPECT_EQ(Read(), "end");
}

TEST_F(FrameReaderTest, CompressibleFramesTakeLessInTheFile) {
  Write(std::string(100'000, 'x'));
  EXPECT_LT(bytes_.size(), 1000u);
}

TEST_F(FrameReaderTest, PayloadChunksAreNotCompressedAgain) {
  Write(std::string(1000, 'x'), FrameType::kPayloadChunk);
  EXPECT_GT(bytes_.size(), 1000u);
  EXPECT_EQ(Read(), "record:" + std::string(1000, 'x'));
}

TEST_F(FrameReaderTest, AFileWithoutFooterIsTornWithNothingLost) {
  Write("foo");
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "torn:0");
  EXPECT_EQ(Read(), "torn:0");
}

TEST_F(FrameReaderTest, AFileThatStopsInAHeaderIsTorn) {
  Write("foo");
  const uint64_t second = Write("bar");
  bytes_.resize(second + kFrameHeaderBytes - 1);
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "torn:31");
  EXPECT_EQ(Read(), "torn:31");
}

TEST_F(FrameReaderTest, AFileThatStopsInAPayloadIsTorn) {
  Write("foo");
  Write("barbaz");
  bytes_.resize(bytes_.size() - 1);
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "torn:37");
  EXPECT_THAT(last_.reason, HasSubstr("stops inside"));
}

TEST_F(FrameReaderTest, AFooterWithoutEndFrameIsNotACleanEnd) {
  Write("foo");
  Finish();
  bytes_.resize(bytes_.size() - kEndFrameBytes);
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "footer");
  EXPECT_EQ(Read(), "torn:0");
}

TEST_F(FrameReaderTest, AnEndFrameThatNamesAnotherFooterIsNotACleanEnd) {
  Write("foo");
  ASSERT_TRUE(writer_.Write(FrameType::kEnd, EncodeEndPayload(8)));
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "torn:0");
}

TEST_F(FrameReaderTest, FramesAfterAnEndFrameAreReadAndNeedTheirOwnFooter) {
  Finish();
  Write("later");
  EXPECT_EQ(Read(), "footer");
  EXPECT_EQ(Read(), "record:later");
  EXPECT_EQ(Read(), "torn:0");
}

TEST_F(FrameReaderTest, ASecondFooterReplacesTheFirst) {
  Finish();
  Finish();
  EXPECT_EQ(Read(), "footer");
  EXPECT_EQ(Read(), "footer");
  EXPECT_EQ(Read(), "end");
  EXPECT_EQ(FindFooter(*file_).value(), bytes_.size() - kEndFrameBytes - kFrameHeaderBytes);
}

TEST_F(FrameReaderTest, ADamagedPayloadCostsItsFrameOnly) {
  const uint64_t first = Write("foo");
  Write("bar");
  Finish();
  bytes_[first + kFrameHeaderBytes] ^= std::byte{1};
  EXPECT_EQ(Read(), "corrupt:35");
  EXPECT_EQ(last_.offset, first);
  EXPECT_THAT(last_.reason, HasSubstr("checksum"));
  EXPECT_EQ(Read(), "record:bar");
  EXPECT_EQ(Read(), "footer");
  EXPECT_EQ(Read(), "end");
}

TEST_F(FrameReaderTest, ADamagedSyncMarkerCostsItsFrameOnly) {
  const uint64_t first = Write("foo");
  Write("bar");
  bytes_[first] ^= std::byte{1};
  EXPECT_EQ(Read(), "corrupt:35");
  EXPECT_EQ(Read(), "record:bar");
}

TEST_F(FrameReaderTest, ADamagedLengthCostsItsFrameOnly) {
  const uint64_t first = Write("foo");
  Write("bar");
  bytes_[first + 10] ^= std::byte{0xff};
  EXPECT_EQ(Read(), "corrupt:35");
  EXPECT_THAT(last_.reason, HasSubstr("header is damaged"));
  EXPECT_EQ(Read(), "record:bar");
}

TEST_F(FrameReaderTest, TheNextFrameIsFoundAfterALongDamagedStretch) {
  const uint64_t first = Write(Noise(300'000));
  const uint64_t second = Write("bar");
  bytes_[first + 1] ^= std::byte{1};
  EXPECT_EQ(Read(), "corrupt:" + std::to_string(second - first));
  EXPECT_EQ(Read(), "record:bar");
}

TEST_F(FrameReaderTest, ASyncMarkerInAPayloadDoesNotFoolTheSearch) {
  std::string payload;
  for (int i = 0; i < 100; ++i) {
    payload.append(reinterpret_cast<const char*>(kSync.data()), kSync.size());
    payload += Noise(3, static_cast<uint32_t>(i));
  }
  const uint64_t first = Write(payload, FrameType::kPayloadChunk);
  const uint64_t second = Write("bar");
  bytes_[first + 30] ^= std::byte{1};
  EXPECT_EQ(Read(), "corrupt:" + std::to_string(second - first));
  EXPECT_EQ(Read(), "record:bar");
}

TEST_F(FrameReaderTest, AFrameInsideAnIntactFrameIsNotRead) {
  Write("inner");
  const std::string copy(AsText(std::span(bytes_).subspan(kMagicBytes)));
  const uint64_t outer = Write(copy, FrameType::kPayloadChunk);
  Write("last");
  bytes_[outer + kFrameHeaderBytes + 33] ^= std::byte{1};  // its header says how long it is
  EXPECT_EQ(Read(), "record:inner");
  EXPECT_EQ(Read(), "corrupt:" + std::to_string(kFrameHeaderBytes + copy.size()));
  EXPECT_EQ(Read(), "record:last");
}

TEST_F(FrameReaderTest, DamageUpToTheEndIsReportedOnceAndThenTheTornEnd) {
  Write("foo");
  const uint64_t second = Write("bar");
  bytes_[second + 5] ^= std::byte{1};
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "corrupt:35");
  EXPECT_EQ(Read(), "torn:0");
}

TEST_F(FrameReaderTest, ZerosAfterTheLastFrameAreATornTail) {
  Write("foo");
  bytes_.resize(bytes_.size() + 100'000);
  EXPECT_EQ(Read(), "record:foo");
  EXPECT_EQ(Read(), "torn:100000");
  EXPECT_THAT(last_.reason, HasSubstr("zeros"));
}

TEST_F(FrameReaderTest, AStoredSizeOverTheLimitIsRefused) {
  const uint64_t first = Write("foo");
  Write("bar");
  Set32(first + 8, kMaxFrameStoredBytes + 1);
  Reseal(first);
  EXPECT_EQ(Read(), "corrupt:35");
  EXPECT_THAT(last_.reason, HasSubstr("larger than the format allows"));
  EXPECT_EQ(Read(), "record:bar");
}

TEST_F(FrameReaderTest, ADecodedSizeOverTheLimitIsRefusedBeforeItIsAllocated) {
  const uint64_t first = Write(std::string(1000, 'x'));
  Set32(first + 12, 0xffffffff);
  Reseal(first);
  EXPECT_EQ(Read().substr(0, 7), "corrupt");
  EXPECT_THAT(last_.reason, HasSubstr("larger than the format allows"));
}

TEST_F(FrameReaderTest, ADecodedSizeThatDoesNotFitTheContentIsRefused) {
  for (const uint32_t size : {999u, 1001u, 0u}) {
    bytes_.clear();
    FrameWriter writer(std::make_unique<MemoryAppendFile>(&bytes_));
    const uint64_t first =
        writer.Write(FrameType::kEvents, AsBytes(std::string(1000, 'x'))).value();
    Set32(first + 12, size);
    Reseal(first);
    Start();
    EXPECT_EQ(Read().substr(0, 7), "corrupt") << size;
    EXPECT_THAT(last_.reason, HasSubstr("zstd"));
  }
}

TEST_F(FrameReaderTest, SizesOfAnUncompressedFrameMustAgree) {
  const uint64_t first = Write("foo");
  Set32(first + 12, 4);
  Reseal(first);
  EXPECT_EQ(Read(), "corrupt:35");
  EXPECT_THAT(last_.reason, HasSubstr("sizes differ"));
}

TEST_F(FrameReaderTest, AnUnknownCompressionIsCorruptionOfThatFrame) {
  const uint64_t first = Write("foo");
  Write("bar");
  bytes_[first + 5] = std::byte{7};
  Reseal(first);
  EXPECT_EQ(Read(), "corrupt:35");
  EXPECT_THAT(last_.reason, HasSubstr("unknown compression 7"));
  EXPECT_EQ(Read(), "record:bar");
}

TEST_F(FrameReaderTest, AnUnknownTypeIsARecordThatTheCallerMaySkip) {
  Write("new", static_cast<FrameType>(99));
  Write("foo");
  EXPECT_EQ(Read(), "record:new");
  EXPECT_EQ(static_cast<int>(last_.type), 99);
  EXPECT_EQ(Read(), "record:foo");
}

TEST_F(FrameReaderTest, AFrameCanBeReadAtItsOffset) {
  Write("foo");
  const uint64_t second = Write("bar");
  Start();
  std::vector<std::byte> payload;
  EXPECT_EQ(reader_->ReadAt(second, payload).outcome, FrameOutcome::kRecord);
  EXPECT_EQ(AsText(payload), "bar");
  EXPECT_EQ(reader_->ReadAt(second + 1, payload).outcome, FrameOutcome::kCorrupt);
  EXPECT_EQ(reader_->ReadAt(bytes_.size(), payload).outcome, FrameOutcome::kTornTail);
  EXPECT_EQ(reader_->ReadAt(UINT64_MAX, payload).outcome, FrameOutcome::kTornTail);
  EXPECT_EQ(Read(), "record:foo") << "reading at an offset moved the reader";
}

TEST_F(FrameReaderTest, MagicTellsForeignNewerAndCutFilesApart) {
  Write("foo");
  Start();
  EXPECT_TRUE(reader_->CheckMagic());
  const auto code = [&](std::vector<std::byte> bytes) {
    const auto file = MakeMemoryFile("test.deja", std::move(bytes));
    return FrameReader(*file).CheckMagic().error().code;
  };
  std::vector<std::byte> newer = bytes_;
  newer[kMagicMajorAt] = std::byte{2};
  EXPECT_EQ(code(newer), ErrorCode::kUnsupportedVersion);
  std::vector<std::byte> before = bytes_;
  std::memcpy(before.data(), "DEJA\1\r\n\x1a", 8);
  EXPECT_EQ(code(before), ErrorCode::kUnsupportedVersion);
  const auto file = MakeMemoryFile("test.deja", before);
  const Status old = FrameReader(*file).CheckMagic();
  EXPECT_NE(old.error().message.find("before 1.0; record again"), std::string::npos)
      << old.error().message;
  std::vector<std::byte> text_mode = bytes_;
  text_mode.erase(text_mode.begin() + 5);
  EXPECT_EQ(code(text_mode), ErrorCode::kForeign);
  EXPECT_EQ(code(std::vector<std::byte>(5000)), ErrorCode::kForeign);
  for (ptrdiff_t size = 0; size < 8; ++size) {
    EXPECT_EQ(code({bytes_.begin(), bytes_.begin() + size}), ErrorCode::kTruncated);
  }
}

TEST_F(FrameReaderTest, TheFooterIsFoundFromTheEnd) {
  Write("foo");
  Start();
  EXPECT_EQ(FindFooter(*file_).error().code, ErrorCode::kNotFound);
  const uint64_t footer = bytes_.size();
  Finish();
  Start();
  EXPECT_EQ(FindFooter(*file_).value(), footer);
  bytes_.push_back(std::byte{0});
  Start();
  EXPECT_FALSE(FindFooter(*file_));
}

TEST_F(FrameReaderTest, AnEndFrameThatPointsAnywhereElseFindsNoFooter) {
  const uint64_t foo = Write("foo");
  for (const uint64_t offset : {uint64_t{0}, foo, foo + 1, UINT64_MAX}) {
    ASSERT_TRUE(writer_.Write(FrameType::kEnd, EncodeEndPayload(offset)));
    Start();
    EXPECT_FALSE(FindFooter(*file_)) << offset;
  }
}

TEST_F(FrameReaderTest, AReadErrorEndsTheFileWithItsReason) {
  class FailingFile final : public ReadFile {
   public:
    Result<size_t> ReadAt(uint64_t, std::span<std::byte>) const override {
      return FailErrno("reading test.deja", 5);
    }
    [[nodiscard]] uint64_t size() const override { return 1000; }
    [[nodiscard]] const std::string& name() const override { return name_; }

   private:
    std::string name_ = "test.deja";
  };
  const FailingFile file;
  FrameReader reader(file);
  std::vector<std::byte> payload;
  const FrameResult result = reader.Next(payload);
  EXPECT_EQ(result.outcome, FrameOutcome::kCorrupt);
  EXPECT_THAT(result.reason, HasSubstr("Input/output error"));
  EXPECT_EQ(reader.Next(payload).outcome, FrameOutcome::kTornTail);
}

// The bytes of a file with 40 GB of nothing in the middle of it.
class FileWithHole final : public ReadFile {
 public:
  explicit FileWithHole(std::vector<std::byte> begin, std::vector<std::byte> end)
      : begin_(std::move(begin)), end_(std::move(end)) {}
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    read_ += out.size();
    size_t done = 0;
    for (; done < out.size() && offset + done < size(); ++done) out[done] = At(offset + done);
    return done;
  }
  [[nodiscard]] uint64_t size() const override { return begin_.size() + kHole + end_.size(); }
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] uint64_t NextData(uint64_t from) const override {
    const bool in_hole = from >= begin_.size() && from < begin_.size() + kHole;
    return in_hole ? begin_.size() + kHole : from;
  }
  [[nodiscard]] uint64_t read() const { return read_; }

 private:
  static constexpr uint64_t kHole = uint64_t{40} << 30;
  [[nodiscard]] std::byte At(uint64_t at) const {
    if (at < begin_.size()) return begin_[at];
    return at < begin_.size() + kHole ? std::byte{0} : end_[at - begin_.size() - kHole];
  }
  std::vector<std::byte> begin_;
  std::vector<std::byte> end_;
  std::string name_ = "test.deja";
  mutable uint64_t read_ = 0;
};

TEST_F(FrameReaderTest, HolesAreNotRead) {
  const uint64_t first = Write("first");
  const uint64_t second = Write("second");
  const auto bytes = [&](uint64_t from, uint64_t to) {
    return std::vector<std::byte>(bytes_.begin() + static_cast<std::ptrdiff_t>(from),
                                  bytes_.begin() + static_cast<std::ptrdiff_t>(to));
  };
  ASSERT_LT(first, second);
  std::vector<std::byte> payload;
  {
    const FileWithHole file(bytes(0, second), {});
    FrameReader reader(file);
    EXPECT_EQ(reader.Next(payload).outcome, FrameOutcome::kRecord);
    EXPECT_EQ(reader.Next(payload).outcome, FrameOutcome::kTornTail);
    EXPECT_LT(file.read(), 1u << 20);
  }
  const FileWithHole file(bytes(0, second), bytes(second, bytes_.size()));
  FrameReader reader(file);
  EXPECT_EQ(reader.Next(payload).outcome, FrameOutcome::kRecord);
  EXPECT_EQ(reader.Next(payload).outcome, FrameOutcome::kCorrupt);
  EXPECT_EQ(reader.Next(payload).outcome, FrameOutcome::kRecord);
  EXPECT_EQ(AsText(payload), "second");
  EXPECT_LT(file.read(), 1u << 20);
}

}  // namespace
}  // namespace deja::format
