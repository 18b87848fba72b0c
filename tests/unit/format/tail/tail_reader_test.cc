#include "format/tail/tail_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "format/log/rank_log.h"
#include "format/wire/message_codec.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

using ::testing::HasSubstr;

// The tail that a process leaves when it is killed.
class TailReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const pid_t child = fork();
    if (child == 0) {
      RankLogOptions options;
      options.trace_dir = dir_.path();
      options.tail_dir = dir_.path();
      options.ring_bytes = 64 << 10;
      options.payload_bytes = 512 << 10;
      auto log = RankLog::Create(options);
      for (uint32_t thread = 0; thread < 3; ++thread) {
        EventSink* sink = (*log)->ClaimSink(thread);
        for (uint64_t seq = 0; seq < 30; ++seq) {
          const std::string text = SomeBytes(seq, seq * 20);
          if (seq % 2 == 0 || !sink->AppendRaw({thread, seq, 1}, Note{text}))
            sink->Append(AsBytes(NoteEvent(thread, seq, text)));
        }
      }
      for (size_t size : {100, 5000, 70000}) {
        const std::string bytes = SomeBytes(size, size);
        (*log)->PutPayload(HashOf(bytes), AsBytes(bytes), 2);
      }
      (*log)->AppendEmergency(AsBytes(NoteEvent(1, 30, "crash")));
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    ASSERT_EQ(ListDir(dir_.path()).size(), 1u);
    path_ = dir_ / ListDir(dir_.path())[0];
    std::ifstream in(path_, std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(in), {});
  }

  void Write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Changes the file in place, reads it, and changes it back.
  void ReadWith(const std::vector<std::pair<size_t, char>>& changes) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    for (const auto& [at, bits] : changes) {
      file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(good_[at] ^ bits));
    }
    file.flush();
    ReadAll();
    for (const auto& [at, bits] : changes) {
      file.seekp(static_cast<std::streamoff>(at)).put(good_[at]);
    }
  }
  template <typename T>
  void Poke(std::string& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  // Opens it and reads everything; whatever it says, it must not crash or give more than there was.
  void ReadAll() {
    const auto tail = TailReader::Open(path_, "");
    if (!tail) return;
    EXPECT_LE((*tail)->events().size(), 91u);
    for (const TailPayload& part : (*tail)->payloads()) {
      ASSERT_LE(part.size, 512u << 10);
      std::vector<std::byte> bytes(part.size);
      (void)(*tail)->ReadPayload(part, bytes);
    }
  }

  TempDir dir_;
  std::string path_;
  std::string good_;
};

TEST_F(TailReaderTest, ReadsTheTailOfADeadProcess) {
  const auto tail = TailReader::Open(path_, "");
  ASSERT_TRUE(tail) << tail.error().message;
  EXPECT_FALSE((*tail)->WriterAlive());
  EXPECT_EQ((*tail)->identity().state, TailState::kOpen);
  EXPECT_EQ((*tail)->damage(), "");
  EXPECT_EQ((*tail)->events().size(), 91u);
  EXPECT_EQ((*tail)->emergency_events(), 1u);
  ASSERT_EQ((*tail)->payloads().size(), 3u);
  EXPECT_EQ((*tail)->payloads()[0].size, 100u);
  EXPECT_EQ((*tail)->payloads()[2].size, 70000u);
  std::string bytes(5000, '\0');
  ASSERT_TRUE((*tail)->ReadPayload((*tail)->payloads()[1],
                                   std::span(reinterpret_cast<std::byte*>(bytes.data()), 5000)));
  EXPECT_EQ(bytes, SomeBytes(5000, 5000));
}

TEST_F(TailReaderTest, AnotherTailOrNoTail) {
  auto tail = TailReader::Open(path_, "sixteen bytes!!!");
  ASSERT_FALSE(tail);
  EXPECT_EQ(tail.error().code, ErrorCode::kForeign);
  tail = TailReader::Open(path_ + ".not", "");
  ASSERT_FALSE(tail);
  EXPECT_EQ(tail.error().code, ErrorCode::kNotFound);
  Write("");
  EXPECT_EQ(TailReader::Open(path_, "").error().code, ErrorCode::kForeign);
  Write(std::string(100000, 'x'));
  EXPECT_EQ(TailReader::Open(path_, "").error().code, ErrorCode::kForeign);
  std::string newer = good_;
  Poke<uint32_t>(newer, offsetof(TailHeader, version), kTailVersion - 1);
  Write(newer);
  EXPECT_EQ(TailReader::Open(path_, "").error().code, ErrorCode::kUnsupportedVersion);
  Poke<uint32_t>(newer, offsetof(TailHeader, version), kTailVersion + 1);
  Write(newer);
  EXPECT_EQ(TailReader::Open(path_, "").error().code, ErrorCode::kUnsupportedVersion);
}

TEST_F(TailReaderTest, TruncatedAnywhere) {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const size_t size = i < 50 ? static_cast<size_t>(i) * 10 : random() % good_.size();
    Write(good_.substr(0, size));
    EXPECT_FALSE(TailReader::Open(path_, "")) << size;
  }
}

TEST_F(TailReaderTest, EveryByteOfTheHeaderChanged) {
  for (size_t at = 0; at < sizeof(TailHeader); ++at) {
    for (const char bits : {'\x01', '\x80', '\xff'}) {
      ReadWith({{at, bits}});
    }
  }
}

TEST_F(TailReaderTest, BytesOfTheContentsChanged) {
  std::mt19937 random(5);
  TailHeader header;
  std::memcpy(static_cast<void*>(&header), good_.data(), sizeof header);
  const std::pair<size_t, size_t> regions[] = {
      {header.directory_offset, 6 * sizeof(RingInfo)},
      {header.emergency_offset, 64},
      {header.rings_offset + RingStride(header.ring_bytes), kTailPage + 4096},
      {header.arena_offset, 256},
      {header.arena_offset + 128, 6000}};
  for (const auto& [begin, size] : regions) {
    for (int i = 0; i < 150; ++i) {
      ReadWith({{begin + random() % size, static_cast<char>(1 << random() % 8)},
                {begin + random() % size, static_cast<char>(1 << random() % 8)}});
    }
  }
}

TEST_F(TailReaderTest, DamageEndsOneRingAndNotTheOthers) {
  TailHeader header;
  std::memcpy(static_cast<void*>(&header), good_.data(), sizeof header);
  std::string bytes = good_;
  // The fourth record of ring 1 or so.
  bytes[header.rings_offset + RingStride(header.ring_bytes) + kTailPage + 200] ^= 1;
  Write(bytes);
  const auto tail = TailReader::Open(path_, "");
  ASSERT_TRUE(tail);
  EXPECT_THAT((*tail)->damage(), HasSubstr("ring 1"));
  EXPECT_GT((*tail)->events().size(), 61u);
  EXPECT_LT((*tail)->events().size(), 91u);
}

}  // namespace
}  // namespace deja::format
