#include "format/reader/rank_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "format/wire/format_version.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"
#include "tests/support/memory_append_file.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

using samples::MakeSampleRank;
using samples::SampleOptions;
using samples::SampleRank;
using testing::HasSubstr;

class RankReaderTest : public testing::Test {
 protected:
  std::unique_ptr<RankReader> Open(const SampleRank& rank) {
    samples::WriteSampleRank(rank, folder());
    Result<std::unique_ptr<RankReader>> reader = RankReader::Open(folder());
    EXPECT_TRUE(reader) << reader.error().message;
    return reader ? std::move(*reader) : nullptr;
  }
  Error OpenError(const SampleRank& rank) {
    samples::WriteSampleRank(rank, folder());
    Result<std::unique_ptr<RankReader>> reader = RankReader::Open(folder());
    return reader ? Error{} : reader.error();
  }
  [[nodiscard]] std::string folder() const { return scratch_.path() + "/rank-00000"; }

  static std::vector<std::string> Encoded(EventCursor& cursor) {
    std::vector<std::string> events;
    while (cursor.Next() != nullptr) events.emplace_back(AsText(cursor.encoded()));
    return events;
  }
  static std::string Payload(const RankReader& reader, const Hash128& hash) {
    std::string bytes(reader.PayloadSize(hash).value_or(0), '\0');
    const std::span out(reinterpret_cast<std::byte*>(bytes.data()), bytes.size());
    const Status read = reader.ReadPayload(hash, out);
    return read ? bytes : "error: " + read.error().message;
  }

  samples::ScratchFolder scratch_;
};

TEST_F(RankReaderTest, AFinishedRankIsReadThroughItsIndex) {
  const SampleRank rank = MakeSampleRank();
  const auto reader = Open(rank);
  EXPECT_EQ(reader->end().state, EndState::kCleanEnd);
  EXPECT_EQ(reader->header().process.hostname, "node-7");
  EXPECT_EQ(reader->header().process.argv.size(), 3u);
  EXPECT_EQ(reader->batches().size(), 3u);
  EXPECT_EQ(reader->totals().events, rank.events.size());
  EXPECT_EQ(reader->totals().last_step, 102u);
  EXPECT_TRUE(reader->totals().fate.known);
  EXPECT_EQ(reader->file_bytes(), rank.events_file.size() + rank.payloads_file.size());
  EXPECT_EQ(Encoded(*reader->Events()), rank.events);
}

TEST_F(RankReaderTest, ARankWithoutFooterIsScannedAndSaysTheSame) {
  SampleOptions options;
  const SampleRank finished = MakeSampleRank(options);
  options.finished = false;
  const SampleRank torn = MakeSampleRank(options);
  const auto with_index = Open(finished);
  const BatchList& batches = with_index->batches();
  const auto reader = Open(torn);
  EXPECT_EQ(reader->end().state, EndState::kTornTail);
  EXPECT_EQ(reader->end().lost_bytes, 0u);
  EXPECT_EQ(Encoded(*reader->Events()), torn.events);
  ASSERT_EQ(reader->batches().size(), batches.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(EncodeToString(reader->batches()[i]), EncodeToString(batches[i]));
  }
  EXPECT_EQ(reader->totals().events, with_index->totals().events);
  EXPECT_EQ(reader->totals().steps, with_index->totals().steps);
  EXPECT_EQ(reader->totals().payloads, with_index->totals().payloads);
  EXPECT_EQ(reader->totals().payload_bytes, with_index->totals().payload_bytes);
  EXPECT_EQ(reader->payloads().size(), torn.payloads.size());
}

TEST_F(RankReaderTest, PayloadsComeBackWithAndWithoutIndex) {
  for (const bool finished : {true, false}) {
    SampleOptions options;
    options.finished = finished;
    const SampleRank rank = MakeSampleRank(options);
    const auto reader = Open(rank);
    ASSERT_GT(rank.payloads.size(), 3u);
    for (const auto& [hash, bytes] : rank.payloads) EXPECT_EQ(Payload(*reader, hash), bytes);
    EXPECT_EQ(reader->PayloadSize(samples::HashOf("other")), std::nullopt);
    std::vector<std::byte> small(3);
    EXPECT_EQ(reader->ReadPayload(rank.payloads[0].first, small).error().code,
              ErrorCode::kInvalidArgument);
  }
}

TEST_F(RankReaderTest, ATornRankIsTheSameInLittleMemory) {
  SampleOptions options;
  options.finished = false;
  const SampleRank rank = MakeSampleRank(options);
  const auto in_memory = Open(rank);
  for (const size_t most : {size_t{0}, size_t{2}, rank.payloads.size()}) {
    const auto reader =
        RankReader::Open(folder(), {.spill_beyond = most, .spill_folder = scratch_.path()});
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ((*reader)->totals().payloads, in_memory->totals().payloads);
    EXPECT_EQ((*reader)->totals().payload_bytes, in_memory->totals().payload_bytes);
    ASSERT_EQ((*reader)->payloads().size(), rank.payloads.size()) << most;
    for (size_t i = 0; i < rank.payloads.size(); ++i)
      EXPECT_EQ((*reader)->payloads()[i].hash, in_memory->payloads()[i].hash);
    for (const auto& [hash, bytes] : rank.payloads) EXPECT_EQ(Payload(**reader, hash), bytes);
    EXPECT_EQ((*reader)->PayloadSize(samples::HashOf("other")), std::nullopt);
  }
}

TEST_F(RankReaderTest, AnOperationIsFoundWithoutReadingWhatPrecedesIt) {
  const SampleRank rank = MakeSampleRank({.batches = 10});
  const auto reader = Open(rank);
  const auto cursor = reader->EventsFromOp(1, 12);
  const Event* event = cursor->Next();
  ASSERT_NE(event, nullptr);
  EXPECT_GT(cursor->batch_number(), 3u);
  bool found = false;
  for (; event != nullptr && !found; event = cursor->Next()) {
    const auto* enter = event->As<CallEnter>();
    found = enter != nullptr && enter->comm_seq == 12;
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(reader->EventsFromOp(1, 10'000)->Next(), nullptr);
  EXPECT_EQ(reader->EventsFromOp(7, 1)->Next(), nullptr);
}

TEST_F(RankReaderTest, AStepIsFoundWithoutReadingWhatPrecedesIt) {
  const auto reader = Open(MakeSampleRank({.batches = 10}));
  const auto cursor = reader->EventsFromStep(105);
  const Event* event = cursor->Next();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(cursor->batch_number(), 5u);
  ASSERT_NE(event->As<Step>(), nullptr);
  EXPECT_EQ(event->As<Step>()->step, 105u);
  EXPECT_EQ(reader->EventsFromStep(99)->Next(), nullptr);
}

TEST_F(RankReaderTest, AnEventLivesAsLongAsItsBatchIsHeld) {
  const auto reader = Open(MakeSampleRank({.batches = 2, .events_per_batch = 5}));
  const auto cursor = reader->Events();
  std::shared_ptr<const void> hold;
  std::string_view data;
  while (const Event* event = cursor->Next()) {
    if (const auto* input = event->As<Input>(); input != nullptr && hold == nullptr) {
      data = input->data;
      hold = cursor->batch();
    }
  }
  ASSERT_NE(hold, nullptr);
  EXPECT_EQ(data, "entropyentropy!!");
}

TEST_F(RankReaderTest, ADamagedBatchOfAFinishedRankIsSkippedAndReported) {
  SampleRank rank = MakeSampleRank();
  const auto good = Open(rank);
  rank.events_file[good->batches()[1].offset + 40] ^= std::byte{1};
  const auto reader = Open(rank);
  const auto cursor = reader->Events();
  EXPECT_EQ(Encoded(*cursor).size(), rank.events.size() - 8);
  EXPECT_EQ(cursor->damaged_batches(), 1u);
  EXPECT_THAT(cursor->damage(), HasSubstr("checksum"));
}

TEST_F(RankReaderTest, ADamagedPayloadIsAnErrorAndTheOthersAreNot) {
  SampleRank rank = MakeSampleRank();
  const auto good = Open(rank);
  const auto list = good->payloads();
  rank.payloads_file[list[0].chunk_offsets[1] + 60] ^= std::byte{1};
  const auto reader = Open(rank);
  for (const PayloadInfo& info : list) {
    const bool is_damaged = info.hash == list[0].hash;
    EXPECT_EQ(Payload(*reader, info.hash).substr(0, 6) == "error:", is_damaged);
  }
}

TEST_F(RankReaderTest, ADamagedHeaderIsTakenFromTheOtherFile) {
  SampleRank rank = MakeSampleRank();
  rank.events_file[kMagicBytes + 40] ^= std::byte{1};
  const auto reader = Open(rank);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->header().process.hostname, "node-7");
  EXPECT_EQ(Encoded(*reader->Events()), rank.events);
}

TEST_F(RankReaderTest, WithoutAnyHeaderTheErrorNamesTheFile) {
  SampleRank rank = MakeSampleRank();
  rank.events_file[kMagicBytes + 40] ^= std::byte{1};
  rank.payloads_file[kMagicBytes + 40] ^= std::byte{1};
  const Error error = OpenError(rank);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("rank-00000/events.deja"));
}

TEST_F(RankReaderTest, MissingForeignAndNewerFilesAreDistinguished) {
  EXPECT_EQ(RankReader::Open(folder()).error().code, ErrorCode::kNotFound);
  SampleRank rank = MakeSampleRank();
  SampleRank foreign = rank;
  foreign.events_file[0] = std::byte{'X'};
  EXPECT_EQ(OpenError(foreign).code, ErrorCode::kForeign);
  SampleRank newer = rank;
  newer.events_file[kMagicMajorAt] = std::byte{2};
  EXPECT_EQ(OpenError(newer).code, ErrorCode::kUnsupportedVersion);
  SampleRank empty = rank;
  empty.events_file.clear();
  empty.payloads_file.clear();
  samples::WriteSampleRank(empty, folder());
  std::filesystem::remove(folder() + "/payloads.deja");
  EXPECT_EQ(RankReader::Open(folder()).error().code, ErrorCode::kTruncated);
}

TEST_F(RankReaderTest, NewerMinorVersionsAreReadAndNewerMajorOnesRefused) {
  const auto minor = Open(MakeSampleRank({.format_minor = kFormatMinor + 7}));
  ASSERT_NE(minor, nullptr);
  EXPECT_EQ(minor->header().format_minor, kFormatMinor + 7);
  EXPECT_EQ(Encoded(*minor->Events()), MakeSampleRank().events);
  const Error major = OpenError(MakeSampleRank({.format_major = kFormatMajor + 1}));
  EXPECT_EQ(major.code, ErrorCode::kUnsupportedVersion);
  EXPECT_THAT(major.message, HasSubstr("use the Deja that recorded it or a newer one"));
}

TEST_F(RankReaderTest, TracesFromBeforeFormat1AreRefusedWithAWayOut) {
  SampleRank before = MakeSampleRank();
  for (auto* file : {&before.events_file, &before.payloads_file})
    std::memcpy(file->data(), "DEJA\1\r\n\x1a", 8);
  const Error error = OpenError(before);
  EXPECT_EQ(error.code, ErrorCode::kUnsupportedVersion);
  EXPECT_THAT(error.message, HasSubstr("before 1.0; record again"));
}

TEST_F(RankReaderTest, AFileThatIsNoFileIsRefused) {
  samples::WriteSampleRank(MakeSampleRank(), folder());
  std::filesystem::remove(folder() + "/events.deja");
  ASSERT_EQ(mkfifo((folder() + "/events.deja").c_str(), 0600), 0);
  EXPECT_EQ(RankReader::Open(folder()).error().code, ErrorCode::kForeign);
  std::filesystem::remove(folder() + "/events.deja");
  std::filesystem::create_symlink("/etc/passwd", folder() + "/events.deja");
  EXPECT_FALSE(RankReader::Open(folder()));
}

TEST_F(RankReaderTest, AMissingPayloadFileIsReported) {
  samples::WriteSampleRank(MakeSampleRank(), folder());
  std::filesystem::remove(folder() + "/payloads.deja");
  const auto reader = RankReader::Open(folder()).value();
  EXPECT_EQ(reader->end().state, EndState::kCorrupt);
  EXPECT_THAT(reader->end().detail, HasSubstr("payloads.deja is missing"));
  EXPECT_EQ(reader->totals().payloads, 0u);
}

TEST_F(RankReaderTest, ACutPayloadFileKeepsItsCompletePayloads) {
  SampleRank rank = MakeSampleRank();
  const auto list = Open(rank)->payloads();
  std::vector<uint64_t> starts;
  for (const PayloadInfo& info : list) starts.push_back(info.chunk_offsets.back());
  rank.payloads_file.resize(*std::max_element(starts.begin(), starts.end()) + 50);
  const auto reader = Open(rank);
  EXPECT_EQ(reader->end().state, EndState::kTornTail);
  EXPECT_EQ(reader->end().lost_bytes, 50u);
  EXPECT_EQ(reader->payloads().size(), rank.payloads.size() - 1);
  size_t there = 0;
  for (const auto& [hash, bytes] : rank.payloads) {
    if (!reader->PayloadSize(hash)) continue;
    ++there;
    EXPECT_EQ(Payload(*reader, hash), bytes);
  }
  EXPECT_EQ(there, rank.payloads.size() - 1);
  EXPECT_EQ(Encoded(*reader->Events()), rank.events);
}

// An index is as hostile as the rest: these have a good checksum and lie.
class HostileIndexTest : public RankReaderTest {
 protected:
  SampleRank WithIndex(const Index& index) {
    SampleRank rank = MakeSampleRank({.finished = false});
    FrameWriter writer(std::make_unique<MemoryAppendFile>(&rank.events_file));
    FrameWriter payloads(std::make_unique<MemoryAppendFile>(&rank.payloads_file));
    EXPECT_TRUE(payloads.WriteFooter({}));
    Footer footer;
    footer.payloads = 1;
    footer.events = 5;
    EXPECT_TRUE(writer.WriteIndex(index, footer));
    EXPECT_TRUE(writer.WriteFooter(footer));
    return rank;
  }
  void ExpectScanned(const Index& index) {
    const SampleRank rank = WithIndex(index);
    const auto reader = Open(rank);
    EXPECT_EQ(Encoded(*reader->Events()), rank.events);
    EXPECT_EQ(reader->totals().events, rank.events.size());
    EXPECT_EQ(reader->payloads().size(), rank.payloads.size());
  }
  // What is said of payloads shows when one is asked for.
  void ExpectPayloadsScanned(const Index& index) {
    const SampleRank rank = WithIndex(index);
    const auto reader = Open(rank);
    EXPECT_EQ(reader->PayloadSize(index.payloads[0].hash), std::nullopt);
    EXPECT_EQ(reader->payloads().size(), rank.payloads.size());
    for (const auto& [hash, bytes] : rank.payloads) EXPECT_EQ(Payload(*reader, hash), bytes);
    EXPECT_EQ(Open(rank)->payloads().size(), rank.payloads.size());
  }
};

TEST_F(HostileIndexTest, BatchesOutsideOfTheFileAreNotBelieved) {
  for (const auto& [offset, size] :
       {std::pair<uint64_t, uint64_t>{0, 100}, {8, 0}, {8, UINT64_MAX}, {UINT64_MAX, 100}}) {
    Index index;
    BatchInfo batch;
    batch.offset = offset;
    batch.size = size;
    index.batches.push_back(batch);
    ExpectScanned(index);
  }
}

TEST_F(HostileIndexTest, OverlappingBatchesAreNotBelieved) {
  Index index;
  BatchInfo batch;
  batch.offset = 8;
  batch.size = 100;
  index.batches = {batch, batch};
  const auto reader = Open(WithIndex(index));
  ASSERT_EQ(reader->batches().size(), 2u);
  const auto cursor = reader->Events();
  EXPECT_EQ(cursor->Next(), nullptr) << "there is no batch in those bytes";
  EXPECT_EQ(cursor->damaged_batches(), 2u);
}

TEST_F(HostileIndexTest, PayloadsLargerThanTheirChunksAreNotBelieved) {
  Index index;
  index.payloads.push_back({samples::HashOf("x"), uint64_t{1} << 39, {8}});
  ExpectPayloadsScanned(index);
  index.payloads[0] = {samples::HashOf("x"), 2 << 20, {8, 8}};
  ExpectPayloadsScanned(index);
  index.payloads[0] = {samples::HashOf("x"), 100, {UINT64_MAX}};
  ExpectPayloadsScanned(index);
  index.payloads[0] = {samples::HashOf("x"), 100, {}};
  ExpectPayloadsScanned(index);
}

// Enough payloads for an index of several blocks; what is in it is true of none of them.
Index LongIndex() {
  Index index;
  for (uint64_t i = 1; i <= 3000; ++i)
    index.payloads.push_back({samples::HashOf("long " + std::to_string(i)), i, {8 + i % 8}});
  return index;
}

TEST_F(HostileIndexTest, PayloadsOfALongIndexAreFoundBlockByBlock) {
  Index index = LongIndex();
  const Hash128 in_part = samples::HashOf("in part");
  for (uint32_t i = 0; i < 1000; ++i) index.pieces.push_back({in_part, 5000, {9}, {i * 5}, {5}, 0});
  const auto reader = Open(WithIndex(index));
  ASSERT_GT(reader->totals().index_blocks.size(), 10u);
  for (const PayloadInfo& payload : index.payloads)
    ASSERT_EQ(reader->PayloadSize(payload.hash), payload.total_size);
  EXPECT_EQ(reader->PayloadSize(samples::HashOf("none")), std::nullopt);
  EXPECT_EQ(reader->PayloadSize(in_part), 5000u) << "its pieces are in several blocks";
  EXPECT_EQ(reader->payloads().size(), 3001u);
  EXPECT_EQ(reader->PayloadSize(index.payloads[77].hash), 78u);
}

TEST_F(HostileIndexTest, ADamagedBlockIsReplacedByWhatThePayloadFilesHold) {
  const Index index = LongIndex();
  SampleRank rank = WithIndex(index);
  const std::vector<IndexBlock> blocks = Open(rank)->totals().index_blocks;
  rank.events_file[blocks[3].offset + kFrameHeaderBytes + 10] ^= std::byte{1};
  const auto reader = Open(rank);
  size_t believed = 0;
  for (const PayloadInfo& payload : index.payloads)
    believed += reader->PayloadSize(payload.hash) ? 1 : 0;
  EXPECT_LT(believed, index.payloads.size());
  EXPECT_EQ(reader->payloads().size(), rank.payloads.size());
  for (const auto& [hash, bytes] : rank.payloads) EXPECT_EQ(Payload(*reader, hash), bytes);
}

TEST_F(HostileIndexTest, BlocksOutOfOrderAreNotBelieved) {
  SampleRank rank = WithIndex(LongIndex());
  Footer footer = Open(rank)->totals();
  std::swap(footer.index_blocks[1], footer.index_blocks[2]);
  FrameWriter writer(std::make_unique<MemoryAppendFile>(&rank.events_file));
  ASSERT_TRUE(writer.WriteFooter(footer));
  const auto reader = Open(rank);
  EXPECT_EQ(reader->totals().events, rank.events.size());
  EXPECT_EQ(reader->payloads().size(), rank.payloads.size());
}

TEST_F(HostileIndexTest, AnIndexThatIsMostlyEmptyElementsIsNotDecoded) {
  Index index;
  index.batches.resize(2'000'000);
  ExpectScanned(index);
}

TEST_F(HostileIndexTest, AnIndexWithWrongPlacesCostsErrorsAndNothingElse) {
  Index index;
  BatchInfo batch;
  batch.offset = 9;  // inside the header frame
  batch.size = 100;
  index.batches.push_back(batch);
  index.payloads.push_back({samples::HashOf("x"), 100, {9}});
  const auto reader = Open(WithIndex(index));
  const auto cursor = reader->Events();
  EXPECT_EQ(cursor->Next(), nullptr);
  EXPECT_EQ(cursor->damaged_batches(), 1u);
  EXPECT_THAT(Payload(*reader, samples::HashOf("x")), HasSubstr("error:"));
}

TEST_F(RankReaderTest, AnUndecodableEventEndsItsBatchAndIsReported) {
  for (const bool finished : {true, false}) {
    SampleRank rank = MakeSampleRank({.finished = false});
    FrameWriter writer(std::make_unique<MemoryAppendFile>(&rank.events_file));
    std::string batch;
    AppendToBatch(AsBytes(rank.events[0]), batch);
    AppendToBatch(AsBytes(std::string_view("\x22\x7f", 2)), batch);
    AppendToBatch(AsBytes(rank.events[1]), batch);
    const uint64_t at = writer.Write(FrameType::kEvents, AsBytes(batch)).value();
    if (finished) {
      Index index;
      BatchInfo info;
      info.offset = at;
      info.size = writer.offset() - at;
      index.batches.push_back(info);
      Footer footer;
      ASSERT_TRUE(writer.WriteIndex(index, footer));
      ASSERT_TRUE(writer.WriteFooter(footer));
    }
    const auto reader = Open(rank);
    const auto cursor = reader->Events();
    EXPECT_EQ(Encoded(*cursor).size(), finished ? 1 : rank.events.size() + 1);
    EXPECT_EQ(cursor->damaged_batches(), 1u);
    EXPECT_EQ(reader->end().state, finished ? EndState::kCleanEnd : EndState::kCorrupt);
  }
}

TEST_F(RankReaderTest, AChunkThatLiesAboutItsPayloadIsReportedAndLeftOut) {
  SampleRank rank = MakeSampleRank({.finished = false});
  FrameWriter writer(std::make_unique<MemoryAppendFile>(&rank.payloads_file));
  const Hash128 hash = samples::HashOf("x");
  const PayloadChunk chunks[] = {
      {hash, 10, 5, 6, 0, 1, "123456"},                       // sticks out
      {hash, uint64_t{1} << 41, 0, 6, 0, 1, "123456"},        // too large
      {hash, uint64_t{1} << 30, 0, 2 << 20, 0, 1, "123456"},  // too large a chunk
      {Hash128{}, 6, 0, 6, 0, 1, "123456"},                   // no name
      {rank.payloads[0].first, 6, 0, 6, 0, 1, "123456"},      // another size than before
      {hash, 6, 0, 0, 0, 1, ""},                              // nothing
  };
  for (const PayloadChunk& chunk : chunks) {
    ASSERT_TRUE(writer.Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk))));
  }
  const auto reader = Open(rank);
  EXPECT_EQ(reader->end().state, EndState::kCorrupt);
  EXPECT_EQ(reader->PayloadSize(hash), std::nullopt);
  for (const auto& [known, bytes] : rank.payloads) EXPECT_EQ(Payload(*reader, known), bytes);
}

TEST_F(RankReaderTest, APayloadWithOtherBytesThanItsHashSaysIsAnError) {
  SampleRank rank = MakeSampleRank({.finished = false});
  FrameWriter writer(std::make_unique<MemoryAppendFile>(&rank.payloads_file));
  const PayloadChunk chunk{samples::HashOf("654321"), 6, 0, 6, 0, 1, "123456"};
  ASSERT_TRUE(writer.Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk))));
  const auto reader = Open(rank);
  EXPECT_THAT(Payload(*reader, chunk.hash), HasSubstr("do not have its hash"));
}

TEST_F(RankReaderTest, AFateThatWasAddedLaterIsSeen) {
  SampleRank rank = MakeSampleRank();
  Footer footer = Open(rank)->totals();
  footer.fate = {true, -1, 9};
  {
    FrameWriter writer(std::make_unique<MemoryAppendFile>(&rank.events_file));
    ASSERT_TRUE(writer.WriteFooter(footer));
  }
  const auto reader = Open(rank);
  EXPECT_EQ(reader->end().state, EndState::kCleanEnd);
  EXPECT_EQ(reader->totals().fate.signal, 9u);
  EXPECT_EQ(Encoded(*reader->Events()), rank.events);
}

}  // namespace
}  // namespace deja::format
