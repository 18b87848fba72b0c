// A trace that was cut anywhere or damaged anywhere: what comes out is what was written, in order,
// as far as it is intact; the rest is reported; nothing crashes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/frame_format.h"
#include "format/wire/message_codec.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

using samples::MakeSampleRank;
using samples::SampleRank;

struct Seen {
  bool opened = false;
  Error error;
  std::vector<std::string> events;
  size_t payloads = 0;
  EndReport end;
  uint64_t damaged_batches = 0;
};

class DamagedTraceTest : public testing::TestWithParam<bool> {
 protected:
  DamagedTraceTest()
      : rank_(MakeSampleRank({.batches = 4, .floats = 70, .finished = GetParam()})),
        events_written_(rank_.events_file),
        payloads_written_(rank_.payloads_file) {
    samples::WriteSampleRank(rank_, scratch_.path());
  }

  Seen Read(const SampleRank& damaged) {
    // Thousands of variants of two files: what did not change since the last is not written again.
    Write(kEventsFile, damaged.events_file, events_written_);
    Write(kPayloadsFile, damaged.payloads_file, payloads_written_);
    Seen seen;
    Result<std::unique_ptr<RankReader>> reader = RankReader::Open(scratch_.path());
    if (!reader) {
      seen.error = reader.error();
      return seen;
    }
    seen.opened = true;
    seen.end = (*reader)->end();
    const auto cursor = (*reader)->Events();
    while (cursor->Next() != nullptr) seen.events.emplace_back(AsText(cursor->encoded()));
    seen.damaged_batches = cursor->damaged_batches();
    EXPECT_EQ(seen.events.size() == (*reader)->totals().events || seen.damaged_batches > 0, true);
    for (const PayloadInfo& info : (*reader)->payloads()) {
      std::string bytes;
      const Status read = (*reader)->StreamPayload(
          info.hash, [&](std::span<const std::byte> part) { bytes += AsText(part); });
      if (!read) continue;
      ++seen.payloads;
      const auto known = std::find_if(rank_.payloads.begin(), rank_.payloads.end(),
                                      [&](const auto& p) { return p.first == info.hash; });
      EXPECT_TRUE(known != rank_.payloads.end() && known->second == bytes);
    }
    return seen;
  }

  void Write(const char* name, const std::vector<std::byte>& bytes,
             std::vector<std::byte>& written) {
    if (written == bytes) return;
    samples::WriteFileBytes(scratch_.path() + "/" + name, bytes);
    written = bytes;
  }

  // `part` in order within `whole`, with gaps only where a batch is missing.
  static bool IsOrderedPart(const std::vector<std::string>& part,
                            const std::vector<std::string>& whole) {
    size_t at = 0;
    for (const std::string& event : part) {
      while (at < whole.size() && whole[at] != event) ++at;
      if (at++ == whole.size()) return false;
    }
    return true;
  }

  samples::ScratchFolder scratch_;
  const SampleRank rank_;
  std::vector<std::byte> events_written_;
  std::vector<std::byte> payloads_written_;
};

TEST_P(DamagedTraceTest, CutAtEveryByteTheEventsAreAPrefixAndTheCutIsReported) {
  size_t last_count = 0;
  for (size_t size = 0; size < rank_.events_file.size(); ++size) {
    SampleRank cut = rank_;
    cut.events_file.resize(size);
    const Seen seen = Read(cut);
    if (!seen.opened) {
      ASSERT_EQ(seen.error.code, ErrorCode::kTruncated) << size << ": " << seen.error.message;
      ASSERT_LT(size, kMagicBytes);  // a header that is cut is taken from the other file
      continue;
    }
    ASSERT_LE(seen.events.size(), rank_.events.size());
    ASSERT_TRUE(std::equal(seen.events.begin(), seen.events.end(), rank_.events.begin())) << size;
    ASSERT_GE(seen.events.size(), last_count) << size;
    last_count = seen.events.size();
    ASSERT_EQ(seen.end.state, EndState::kTornTail) << size << ": " << seen.end.detail;
    ASSERT_EQ(seen.payloads, rank_.payloads.size()) << size;
    ASSERT_EQ(seen.damaged_batches, 0u);
  }
  EXPECT_EQ(last_count, GetParam() ? rank_.events.size() : rank_.events.size() - 8);
}

TEST_P(DamagedTraceTest, CutAtEveryByteThePayloadFileKeepsWhatIsWhole) {
  size_t last_count = 0;
  for (size_t size = 0; size < rank_.payloads_file.size(); ++size) {
    SampleRank cut = rank_;
    cut.payloads_file.resize(size);
    const Seen seen = Read(cut);
    ASSERT_TRUE(seen.opened);
    ASSERT_EQ(seen.events, rank_.events) << size;
    ASSERT_NE(seen.end.state, EndState::kCleanEnd) << size;
    ASSERT_GE(seen.payloads, last_count) << size;
    last_count = seen.payloads;
  }
  EXPECT_GE(last_count, rank_.payloads.size() - 1);
}

TEST_P(DamagedTraceTest, EveryFlippedByteCostsAtMostOneBatchAndIsReported) {
  std::mt19937 random(1);
  const size_t all = std::min<size_t>(rank_.events_file.size(), 6000);
  for (size_t at = 0; at < all; ++at) {
    SampleRank damaged = rank_;
    damaged.events_file[at] ^= static_cast<std::byte>(1 + random() % 255);
    const Seen seen = Read(damaged);
    if (!seen.opened) {
      ASSERT_LT(at, kMagicBytes) << seen.error.message;
      continue;
    }
    ASSERT_TRUE(IsOrderedPart(seen.events, rank_.events)) << at;
    ASSERT_GE(seen.events.size() + 8, rank_.events.size()) << at;
    const bool told = seen.end.state != EndState::kCleanEnd || seen.damaged_batches > 0;
    const bool whole = seen.events.size() == rank_.events.size();
    ASSERT_TRUE(told || whole) << at;
  }
}

TEST_P(DamagedTraceTest, EveryFlippedByteOfThePayloadFileCostsAtMostOnePayload) {
  std::mt19937 random(2);
  for (size_t at = 0; at < rank_.payloads_file.size(); ++at) {
    SampleRank damaged = rank_;
    damaged.payloads_file[at] ^= static_cast<std::byte>(1 + random() % 255);
    const Seen seen = Read(damaged);
    ASSERT_TRUE(seen.opened) << at;
    ASSERT_EQ(seen.events, rank_.events) << at;
    ASSERT_GE(seen.payloads + 1, at < kMagicBytes ? 1 : rank_.payloads.size()) << at;
  }
}

TEST_P(DamagedTraceTest, StretchesThatAreOverwrittenInsertedOrRemovedAreSurvived) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    SampleRank damaged = rank_;
    std::vector<std::byte>& file = round % 2 == 0 ? damaged.events_file : damaged.payloads_file;
    const size_t at = kMagicBytes + random() % (file.size() - kMagicBytes);
    const size_t size = std::min<size_t>(random() % 400, file.size() - at);
    const auto begin = file.begin() + static_cast<ptrdiff_t>(at);
    const auto end = begin + static_cast<ptrdiff_t>(size);
    switch (round / 2 % 4) {
      case 0:
        std::generate(begin, end, [&] { return static_cast<std::byte>(random()); });
        break;
      case 1:
        std::fill(begin, end, std::byte{0});
        break;
      case 2:
        file.erase(begin, end);
        break;
      default: {
        const std::vector<std::byte> copy(begin, end);
        file.insert(begin, copy.begin(), copy.end());
      }
    }
    const Seen seen = Read(damaged);
    if (!seen.opened) continue;
    for (const std::string& event : seen.events) {
      ASSERT_NE(std::find(rank_.events.begin(), rank_.events.end(), event), rank_.events.end());
    }
  }
}

TEST_P(DamagedTraceTest, VerifyNeverSaysThatADamagedTraceIsGood) {
  std::mt19937 random(4);
  const std::string dir = scratch_.path() + "/run.deja";
  for (int round = 0; round < 400; ++round) {
    SampleRank damaged = rank_;
    std::vector<std::byte>& file = round % 2 == 0 ? damaged.events_file : damaged.payloads_file;
    file[random() % file.size()] ^= static_cast<std::byte>(1 + random() % 255);
    samples::WriteSampleRank(damaged, dir + "/rank-00000");
    const auto trace = Trace::Open(dir);
    ASSERT_TRUE(trace);
    const Result<VerifyReport> report = Verify(**trace, {});
    ASSERT_TRUE(report);
    EXPECT_FALSE(report->problems.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(, DamagedTraceTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Finished" : "Unfinished"; });

// Random bytes with a good magic, and random frames with good checksums.
TEST(HostileTraceTest, NoiseIsRefusedOrEmpty) {
  samples::ScratchFolder scratch;
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> noise(random() % 5000);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    SampleRank rank;
    const std::span<const std::byte> magic = std::as_bytes(std::span(kMagic));
    rank.events_file.assign(magic.begin(), magic.end());
    for (int frame = 0; frame < 5; ++frame) {
      FrameHeader header;
      header.type = static_cast<FrameType>(random() % 8);
      header.codec = static_cast<FrameCodec>(random() % 3);
      header.stored_size = static_cast<uint32_t>(random() % 3 == 0 ? random() : noise.size());
      header.raw_size = static_cast<uint32_t>(random() % 3 == 0 ? random() : noise.size());
      header.payload_checksum = Checksum(noise);
      const auto bytes = EncodeFrameHeader(header);
      rank.events_file.insert(rank.events_file.end(), bytes.begin(), bytes.end());
      rank.events_file.insert(rank.events_file.end(), noise.begin(), noise.end());
    }
    rank.payloads_file = rank.events_file;
    samples::WriteSampleRank(rank, scratch.path());
    const auto reader = RankReader::Open(scratch.path());
    if (!reader) continue;
    const auto cursor = (*reader)->Events();
    while (cursor->Next() != nullptr) {
    }
  }
}

}  // namespace
}  // namespace deja::format
