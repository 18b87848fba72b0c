// Bundles that leave something out: what is in them, what they say, how large they are.
#include "format/pack/reduced_copy.h"
#include "format/log/rank_log.h"
#include "format/pack/bundle_writer.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/message_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kWholeJob[] = "00112233445566778899aabbccddeeff";
constexpr uint32_t kRanks = 3;
constexpr uint64_t kWholeSteps = 8;
constexpr uint64_t kStartNumber = 1000;  // of a payload before the first step

// Three ranks of one machine. Before the first step and in each, all have one payload together and
// each has one of its own.
class ReducedCopyTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(dir());
    std::vector<std::unique_ptr<RankLog>> logs;
    for (uint32_t rank = 0; rank < kRanks; ++rank) logs.push_back(MakeRank(rank));
    RecordPayloads(logs, kStartNumber);
    for (uint64_t step = 0; step < kWholeSteps; ++step) {
      for (uint32_t rank = 0; rank < kRanks; ++rank) Append(*logs[rank], rank, Step{step});
      RecordPayloads(logs, step);
    }
    for (auto& log : logs) log->Finish();
  }

  std::unique_ptr<RankLog> MakeRank(uint32_t rank) {
    RankLogOptions options;
    options.trace_dir = dir();
    options.tail_dir = tails_.path();
    options.job_id = kWholeJob;
    options.payload_bytes = 16 << 20;
    options.copies = 1;
    auto log = RankLog::Create(options).value();
    TraceHeader header;
    header.rank = rank;
    header.world_size = kRanks;
    header.job_id = kWholeJob;
    header.level = static_cast<uint32_t>(Level::kFull);
    EXPECT_TRUE(log->BecomeRank(header));
    return log;
  }
  template <typename Body>
  void Append(RankLog& log, uint32_t rank, const Body& body) {
    const EventHead head{0, seq_[rank]++, ++time_};
    ASSERT_TRUE(log.ClaimSink(0)->Append(AsBytes(EncodeEventToString(head, body))));
  }
  void RecordPayloads(std::vector<std::unique_ptr<RankLog>>& logs, uint64_t number) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      for (const std::string& bytes : {Together(number), Own(rank, number)}) {
        ASSERT_TRUE(logs[rank]->PutPayload(HashOf(bytes), AsBytes(bytes), 4).kept);
        CallResults results;
        results.comm = 1;
        results.comm_seq = number + 1;
        results.outputs.push_back({});
        results.outputs[0].hash = HashOf(bytes);
        results.outputs[0].stats.sum = 2.5;
        results.outputs[0].payload = static_cast<uint32_t>(PayloadState::kKept);
        Append(*logs[rank], rank, results);
      }
    }
  }
  static std::string Together(uint64_t number) {
    return SomeBytes(static_cast<uint32_t>(number), 60'000);
  }
  static std::string Own(uint32_t rank, uint64_t number) {
    return SomeBytes(static_cast<uint32_t>(5000 + 100'000 * rank + number), 30'000);
  }

  [[nodiscard]] std::string dir() const { return scratch_ / "run.deja"; }
  [[nodiscard]] std::string zip() const { return scratch_ / "run.deja.zip"; }

  BundleResult Pack(const PackOptions& options) {
    fs::remove(zip());
    auto packed = WriteBundle(dir(), zip(), options);
    EXPECT_TRUE(packed) << packed.error().message;
    bundle_ = Trace::Open(zip()).value();
    return std::move(*packed);
  }
  bool Has(uint32_t rank, const std::string& bytes) {
    const RankReader& reader = **bundle_->Rank(rank);
    std::string out(bytes.size(), '\0');
    return reader.ReadPayload(HashOf(bytes), std::as_writable_bytes(std::span(out))) &&
           out == bytes;
  }
  // What the rank referred to in the step.
  bool HasStep(uint32_t rank, uint64_t step) {
    return Has(rank, Together(step)) && Has(rank, Own(rank, step));
  }
  VerifyReport Verified() { return Verify(*bundle_, {}).value(); }
  void ExpectSound() {
    const VerifyReport report = Verified();
    EXPECT_TRUE(report.problems.empty()) << report.problems[0].what;
    EXPECT_EQ(report.payloads_missing, 0u);
    EXPECT_EQ(report.events_lost, 0u);
    EXPECT_EQ(report.ranks, kRanks);
  }

  TempDir scratch_;
  TempDir tails_;
  std::unique_ptr<Trace> bundle_;
  uint64_t seq_[kRanks + 1] = {};
  uint64_t time_ = 0;
};

TEST_F(ReducedCopyTest, OneRankBringsWhatOthersKeepForIt) {
  PackOptions options;
  options.ranks = {2};
  const BundleResult packed = Pack(options);
  ExpectSound();
  EXPECT_TRUE(HasStep(2, kStartNumber));
  for (uint64_t step = 0; step < kWholeSteps; ++step) {
    EXPECT_TRUE(HasStep(2, step));
    EXPECT_TRUE(Has(0, Together(step))) << "it is there, whoever needs it";
    EXPECT_FALSE(Has(0, Own(0, step)));
  }
  ASSERT_EQ(packed.left_out.size(), 2u);
  EXPECT_EQ(packed.left_out[0].rank, 0u);
  EXPECT_EQ(packed.left_out[0].payloads, kWholeSteps + 1);
  EXPECT_EQ(packed.left_out[0].payload_bytes, (kWholeSteps + 1) * 30'000);
  EXPECT_EQ(packed.left_out[1].rank, 1u);
  EXPECT_EQ(Verified().payloads_left_out, 2 * (kWholeSteps + 1));
  EXPECT_EQ((*bundle_->Rank(2))->left_out().payloads, 0u);
  EXPECT_THAT((*bundle_->Rank(0))->left_out().what, HasSubstr("rank 2"));
}

TEST_F(ReducedCopyTest, StepsAndWhatCameBeforeThem) {
  PackOptions options;
  options.steps = {3, 5};
  Pack(options);
  ExpectSound();
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(HasStep(rank, kStartNumber));
    for (uint64_t step = 0; step < kWholeSteps; ++step)
      EXPECT_EQ(HasStep(rank, step), 3 <= step && step <= 5) << step;
    EXPECT_EQ((*bundle_->Rank(rank))->left_out().payloads, 2 * (kWholeSteps - 3));
  }
  const std::string lost = Own(1, 7);
  std::string out(lost.size(), '\0');
  const Status read =
      (*bundle_->Rank(1))->ReadPayload(HashOf(lost), std::as_writable_bytes(std::span(out)));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("left out"));
  EXPECT_THAT(read.error().message, HasSubstr("steps 3 to 5"));
}

TEST_F(ReducedCopyTest, TheLastStepsThatFitAreKept) {
  PackOptions options;
  options.ranks = {1};
  const uint64_t least = Pack([&] {
                           PackOptions none = options;
                           none.level = Level::kDigest;
                           return none;
                         }())
                             .bytes;
  EXPECT_FALSE(Has(1, Together(7)));
  // The start and about four steps.
  options.max_bytes = least + 5 * 90'000 + 10'000;
  const BundleResult packed = Pack(options);
  EXPECT_LE(packed.bytes, options.max_bytes);
  EXPECT_GT(packed.bytes, options.max_bytes - 100'000) << "another step would have fitted";
  ExpectSound();
  EXPECT_TRUE(HasStep(1, kStartNumber));
  for (uint64_t step = 0; step < kWholeSteps; ++step)
    EXPECT_EQ(HasStep(1, step), step >= 4) << step;
  EXPECT_EQ((*bundle_->Rank(1))->left_out().payloads, 2 * 4u);
  EXPECT_EQ((*bundle_->Rank(1))->left_out().what, "those of steps up to 3");
}

TEST_F(ReducedCopyTest, ABundleMayBeAsLargeAsItIs) {
  // Some words about what did not fit are longer than what was left out on request.
  constexpr uint64_t kWords = 100 * kRanks;
  PackOptions options;
  options.ranks = {1};
  options.zstd_level = 3;
  const uint64_t all = Pack(options).bytes;
  for (const bool enough : {true, false}) {
    options.max_bytes = enough ? all + kWords : all - 1;
    const BundleResult packed = Pack(options);
    EXPECT_LE(packed.bytes, options.max_bytes);
    EXPECT_EQ(HasStep(1, 0), enough);
    EXPECT_TRUE(HasStep(1, 1));
  }
}

TEST_F(ReducedCopyTest, HigherLevelsAreForPayloadsToo) {
  std::string text;
  uint32_t random = 1;
  while (text.size() < 300'000) {
    random = random * 1664525 + 1013904223;
    text += "word" + std::to_string((random >> 22) * 7919 % 1000) +
            ((random >> 20) % 4 == 0 ? "\n" : " ");
  }
  auto log = MakeRank(kRanks);
  ASSERT_TRUE(log->PutPayload(HashOf(text), AsBytes(text), 1).kept);
  Input input;
  input.hash = HashOf(text);
  Append(*log, kRanks, input);
  log->Finish();
  PackOptions options;
  options.zstd_level = 3;
  const uint64_t fast = Pack(options).bytes;
  options.zstd_level = 19;
  EXPECT_LT(Pack(options).bytes, fast - 5'000);
  EXPECT_TRUE(Has(kRanks, text));
  EXPECT_TRUE(Verified().problems.empty());
}

TEST_F(ReducedCopyTest, RoomThatIsLeftIsForOtherRanks) {
  PackOptions options;
  // Everything of rank 0, which comes first, and of another one.
  options.max_bytes = (kWholeSteps + 1) * (60'000 + 30'000 + 30'000) + 30'000;
  const BundleResult packed = Pack(options);
  EXPECT_LE(packed.bytes, options.max_bytes);
  ExpectSound();
  for (uint64_t step = 0; step < kWholeSteps; ++step) {
    EXPECT_TRUE(HasStep(0, step));
    EXPECT_TRUE(HasStep(1, step));
    EXPECT_FALSE(HasStep(2, step));
  }
  ASSERT_EQ(packed.left_out.size(), 1u);
  EXPECT_EQ(packed.left_out[0].rank, 2u);
}

TEST_F(ReducedCopyTest, ATraceThatFitsIsTakenAsItIs) {
  PackOptions options;
  options.max_bytes = 100 << 20;
  const BundleResult packed = Pack(options);
  EXPECT_TRUE(packed.left_out.empty());
  EXPECT_EQ(packed.bytes, [&] { return Pack({}).bytes; }());
}

TEST_F(ReducedCopyTest, EventsAreNeverLeftOut) {
  PackOptions options;
  options.max_bytes = 2000;
  const auto packed = WriteBundle(dir(), zip(), options);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().code, ErrorCode::kLimit);
  EXPECT_THAT(packed.error().message, HasSubstr("2000"));
  EXPECT_FALSE(fs::exists(zip()));
}

TEST_F(ReducedCopyTest, LevelOrderHasNoDigests) {
  PackOptions options;
  options.level = Level::kOrder;
  Pack(options);
  ExpectSound();
  const auto original = Trace::Open(dir()).value();
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const RankReader& reader = **bundle_->Rank(rank);
    EXPECT_EQ(reader.header().level, static_cast<uint32_t>(Level::kOrder));
    EXPECT_EQ(reader.totals().events, (*original->Rank(rank))->totals().events);
    const auto cursor = reader.Events();
    while (const Event* event = cursor->Next()) {
      const auto* results = event->As<CallResults>();
      if (results == nullptr) continue;
      ASSERT_EQ(results->outputs.size(), 1u);
      EXPECT_TRUE(results->outputs[0].hash.IsZero());
      EXPECT_EQ(results->outputs[0].stats, TensorStats{});
      EXPECT_NE(results->comm_seq, 0u);
    }
  }
}

TEST_F(ReducedCopyTest, ABundleCanBeMadeSmallerAgain) {
  PackOptions options;
  options.ranks = {0};
  options.zstd_level = 19;
  Pack(options);
  const std::string first = scratch_ / "first.zip";
  fs::rename(zip(), first);
  options.steps = {6, 7};
  const BundleResult again = WriteBundle(first, zip(), options).value();
  bundle_ = Trace::Open(zip()).value();
  ExpectSound();
  EXPECT_TRUE(HasStep(0, 6));
  EXPECT_FALSE(HasStep(0, 5));
  EXPECT_EQ(again.left_out.size(), kRanks);
  EXPECT_FALSE(WriteBundle(first, zip(), options)) << "it exists already";
}

TEST_F(ReducedCopyTest, ARankThatIsNotThereIsAnError) {
  PackOptions options;
  options.ranks = {1, 7};
  const auto packed = WriteBundle(dir(), zip(), options);
  ASSERT_FALSE(packed);
  EXPECT_THAT(packed.error().message, HasSubstr("rank 7"));
}

TEST_F(ReducedCopyTest, ALostPayloadIsNotLeftOut) {
  fs::remove_all(dir() + "/rank-00000");
  PackOptions options;
  options.ranks = {2};
  Pack(options);
  const VerifyReport report = Verified();
  EXPECT_GT(report.payloads_missing, 0u) << "what rank 0 kept for rank 2";
  EXPECT_FALSE(report.problems.empty());
}

}  // namespace
}  // namespace deja::format
