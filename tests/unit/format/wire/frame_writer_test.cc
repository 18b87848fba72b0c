#include "format/wire/frame_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"
#include "tests/support/memory_append_file.h"

namespace deja::format {
namespace {

std::vector<std::string> ReadAll(const std::vector<std::byte>& bytes, FrameOutcome& end) {
  const auto file = MakeMemoryFile("test.deja", bytes);
  FrameReader reader(*file);
  std::vector<std::string> payloads;
  std::vector<std::byte> payload;
  for (;;) {
    const FrameResult result = reader.Next(payload);
    end = result.outcome;
    if (end != FrameOutcome::kRecord) return payloads;
    payloads.emplace_back(AsText(payload));
  }
}

// Fails every operation in turn, until a run gets by without meeting the fault.
TEST(FrameWriterTest, WhicheverWriteFailsTheFileHoldsAPrefixOfTheFrames) {
  for (const bool sticky : {false, true}) {
    for (const size_t bytes_before : {0, 1, 20, 33}) {
      for (int fail_at = 0;; ++fail_at) {
        ASSERT_LT(fail_at, 100);
        std::vector<std::byte> bytes;
        Faults faults{fail_at, sticky, bytes_before, 0};
        FrameWriter writer(std::make_unique<MemoryAppendFile>(&bytes, &faults));
        std::vector<std::string> accepted;
        for (int i = 0; i < 10; ++i) {
          const std::string payload = "payload " + std::to_string(i);
          if (writer.Write(FrameType::kEvents, AsBytes(payload))) accepted.push_back(payload);
        }
        const bool failed = writer.failure().has_value();
        if (!failed) {
          EXPECT_EQ(accepted.size(), 10u);
          break;
        }
        EXPECT_EQ(writer.failure()->sys_errno, ENOSPC);
        EXPECT_FALSE(writer.Write(FrameType::kEvents, AsBytes("more")));
        FrameOutcome end{};
        EXPECT_EQ(ReadAll(bytes, end), accepted);
        EXPECT_EQ(end, FrameOutcome::kTornTail);
      }
    }
  }
}

TEST(FrameWriterTest, AFrameInTwoPartsIsTheSameAsInOne) {
  std::mt19937_64 random(3);
  std::string data(100000, '\0');
  for (char& byte : data) byte = static_cast<char>(random());
  for (const size_t head :
       {size_t{0}, size_t{1}, size_t{31}, size_t{90}, FrameWriter::kMaxHeadBytes}) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{33}, data.size() - head}) {
      const std::string payload = data.substr(0, head + size);
      std::vector<std::byte> whole;
      std::vector<std::byte> in_two;
      FrameWriter first(std::make_unique<MemoryAppendFile>(&whole));
      FrameWriter second(std::make_unique<MemoryAppendFile>(&in_two));
      EXPECT_EQ(*first.Write(FrameType::kPayloadChunk, AsBytes(payload)),
                *second.WriteInTwo(FrameType::kPayloadChunk, AsBytes(payload).first(head),
                                   AsBytes(payload).subspan(head)));
      EXPECT_EQ(whole, in_two) << head << " " << size;
    }
  }
}

TEST(FrameWriterTest, AFailedSyncIsTheEndToo) {
  std::vector<std::byte> bytes;
  Faults faults{2, false, 0, 0};
  FrameWriter writer(std::make_unique<MemoryAppendFile>(&bytes, &faults));
  ASSERT_TRUE(writer.Write(FrameType::kEvents, AsBytes("x")));
  EXPECT_FALSE(writer.Sync());
  EXPECT_FALSE(writer.Write(FrameType::kEvents, AsBytes("y")));
}

TEST(FrameWriterTest, AFrameOverTheLimitIsRefusedAndTheNextOneIsNot) {
  std::vector<std::byte> bytes;
  FrameWriter writer(std::make_unique<MemoryAppendFile>(&bytes));
  EXPECT_EQ(
      writer.Write(FrameType::kEvents, std::vector<std::byte>(kMaxFrameRawBytes + 1)).error().code,
      ErrorCode::kLimit);
  EXPECT_TRUE(writer.Write(FrameType::kEvents, AsBytes("x")));
}

TEST(FrameWriterTest, TheLargestFrameIsReadBackEvenIfItDoesNotShrink) {
  std::vector<std::byte> bytes;
  FrameWriter writer(std::make_unique<MemoryAppendFile>(&bytes));
  std::vector<std::byte> noise(kMaxFrameRawBytes);
  std::mt19937_64 random(1);
  for (std::byte& b : noise) b = static_cast<std::byte>(random());
  ASSERT_TRUE(writer.Write(FrameType::kEvents, noise));
  FrameOutcome end{};
  const std::vector<std::string> frames = ReadAll(bytes, end);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0], AsText(noise));
}

TEST(FrameWriterTest, AnIndexOfAnySizeIsCutIntoLegalFrames) {
  std::vector<std::byte> bytes;
  FrameWriter writer(std::make_unique<MemoryAppendFile>(&bytes));
  Index index;
  index.batches.resize(40'000);
  index.payloads.resize(40'000);
  std::mt19937_64 random(1);
  for (BatchInfo& batch : index.batches) {
    for (uint32_t t = 0; t < 20; ++t) batch.threads.push_back({t, random(), random()});
  }
  for (PayloadInfo& payload : index.payloads) payload.total_size = random();
  Footer footer;
  ASSERT_TRUE(writer.WriteIndex(index, footer));
  EXPECT_EQ(footer.index_offset, kMagicBytes) << "the first frame comes right behind the magic";
  FrameOutcome end{};
  const std::vector<std::string> frames = ReadAll(bytes, end);
  EXPECT_GT(frames.size(), 1u);
  Index back;
  for (const std::string& frame : frames) ASSERT_TRUE(Decode(AsBytes(frame), back));
  ASSERT_EQ(back.batches.size(), index.batches.size());
  ASSERT_EQ(back.payloads.size(), index.payloads.size());
  uint64_t in_blocks = 0;
  for (const BatchBlock& block : back.batch_blocks) in_blocks += block.batches;
  EXPECT_EQ(in_blocks, index.batches.size());
  EXPECT_GT(back.batch_blocks.size(), 500u);
  EXPECT_LT(back.batch_blocks.size(), 1100u) << "a directory that is read whole";
  back.batch_blocks.clear();
  EXPECT_EQ(EncodeToString(back), EncodeToString(index));
}

TEST(FileTest, AppendedFramesAreReadAndExistingFilesAreNotReplaced) {
  const std::string path = testing::TempDir() + "/file_test." + std::to_string(getpid());
  unlink(path.c_str());
  {
    auto file = CreateAppendFile(path).value();
    ASSERT_TRUE(file->Append(AsBytes("hello "), AsBytes("world")));
    ASSERT_TRUE(file->Truncate(5));
    ASSERT_TRUE(file->Append(AsBytes("!"), {}));
    EXPECT_EQ(file->size(), 6u);
  }
  EXPECT_EQ(CreateAppendFile(path).error().sys_errno, EEXIST);
  ASSERT_TRUE(OpenAppendFile(path).value()->Append(AsBytes("?"), {}));
  std::string text(100, '\0');
  const auto file = OpenReadFile(path).value();
  EXPECT_EQ(file->size(), 7u);
  const std::span out(reinterpret_cast<std::byte*>(text.data()), text.size());
  EXPECT_EQ(file->ReadAt(4, out).value(), 3u);
  EXPECT_EQ(text.substr(0, 3), "o!?");
  EXPECT_EQ(file->ReadAt(7, out).value(), 0u);
  unlink(path.c_str());
  EXPECT_EQ(OpenReadFile(path).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(OpenReadFile(testing::TempDir()).error().code, ErrorCode::kForeign);
}

}  // namespace
}  // namespace deja::format
