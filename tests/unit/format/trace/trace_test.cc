#include "format/trace/trace.h"
#include "format/layout/rank_folder.h"
#include "format/pack/bundle_writer.h"
#include "format/trace/verify.h"
#include "format/wire/message_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;
using samples::MakeSampleRank;
using samples::SampleRank;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    for (const uint32_t rank : {0u, 1u, 5u}) Add(rank, MakeSampleRank({.rank = rank}));
  }
  void Add(uint32_t rank, const SampleRank& sample, uint32_t attempt = 0) {
    samples::WriteSampleRank(sample, dir() + "/" + MakeRankFolderName(rank, attempt));
  }
  [[nodiscard]] std::string dir() const { return scratch_.path() + "/run.deja"; }
  [[nodiscard]] std::string zip() const { return scratch_.path() + "/run.deja.zip"; }

  static std::vector<std::string> Events(const RankReader& reader) {
    std::vector<std::string> events;
    const auto cursor = reader.Events();
    while (cursor->Next() != nullptr) events.emplace_back(AsText(cursor->encoded()));
    return events;
  }

  struct Entry {
    std::string name;
    std::string bytes;
    bool deflate = false;
  };
  void MakeZip(const std::vector<Entry>& entries) {
    int error = 0;
    zip_t* archive = zip_open(zip().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
    ASSERT_NE(archive, nullptr);
    for (const Entry& entry : entries) {
      zip_source_t* source = zip_source_buffer(archive, entry.bytes.data(), entry.bytes.size(), 0);
      const zip_int64_t index = zip_file_add(archive, entry.name.c_str(), source, 0);
      ASSERT_GE(index, 0) << entry.name;
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                               entry.deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    ASSERT_EQ(zip_close(archive), 0) << zip_strerror(archive);
  }
  static std::string Text(const std::vector<std::byte>& bytes) {
    return std::string(AsText(bytes));
  }

  samples::ScratchFolder scratch_;
};

TEST(RankFolderTest, NamesAreParsedExactlyAsTheyAreMade) {
  EXPECT_EQ(MakeRankFolderName(3, 0), "rank-00003");
  EXPECT_EQ(MakeRankFolderName(123456, 2), "rank-123456.2");
  EXPECT_EQ(ParseRankFolderName("rank-00003"), (RankFolderName{3, 0}));
  EXPECT_EQ(ParseRankFolderName("rank-123456.2"), (RankFolderName{123456, 2}));
  EXPECT_EQ(ParseRankFolderName("rank-4294967295.4294967295"),
            (RankFolderName{4294967295u, 4294967295u}));
  for (const char* bad : {"", "rank-", "rank-3", "rank-000003", "rank-00003.0", "rank-00003.",
                          "rank-00003.01", "rank-4294967296", "rank--0003", "rank-0000a",
                          "rank-00003/..", "Rank-00003", "rank-00003 ", "rank-+0003"}) {
    EXPECT_EQ(ParseRankFolderName(bad), std::nullopt) << bad;
  }
}

TEST_F(TraceTest, RanksAreListedInOrderAndOpenedByNumber) {
  Add(1, MakeSampleRank({.rank = 1, .batches = 1}), 1);
  fs::create_directories(dir() + "/something-else");
  const auto trace = Trace::Open(dir() + "/").value();
  ASSERT_EQ(trace->ranks().size(), 4u);
  EXPECT_EQ(trace->ranks()[2].attempt, 1u);
  EXPECT_EQ(trace->Rank(5).value()->header().rank, 5u);
  EXPECT_EQ(trace->Rank(1).value()->batches().size(), 1u) << "the last attempt is the default";
  EXPECT_EQ(trace->Rank(1, 0).value()->batches().size(), 3u);
  EXPECT_EQ(trace->Rank(1).value(), trace->Rank(1).value()) << "opened twice";
}

TEST_F(TraceTest, ARankThatIsNotThereIsAnErrorThatListsThoseThatAre) {
  const auto trace = Trace::Open(dir()).value();
  const auto missing = trace->Rank(3);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr("rank 3"), HasSubstr("0, 1, 5")));
  EXPECT_THAT(trace->Rank(5, 4).error().message, HasSubstr("attempt 4"));
}

TEST_F(TraceTest, OtherFilesAndFoldersAreNoTraces) {
  EXPECT_EQ(Trace::Open(scratch_.path() + "/nothing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Trace::Open(scratch_.path()).error().code, ErrorCode::kForeign);
  EXPECT_EQ(Trace::Open("/dev/null").error().code, ErrorCode::kForeign);
  samples::WriteFileBytes(zip(), std::vector<std::byte>(5000, std::byte{7}));
  EXPECT_EQ(Trace::Open(zip()).error().code, ErrorCode::kForeign);
  samples::WriteFileBytes(zip(), {});
  EXPECT_FALSE(Trace::Open(zip()));
}

TEST_F(TraceTest, ABundleHoldsWhatTheDirectoryHeld) {
  const BundleResult bundle = WriteBundle(dir(), zip()).value();
  EXPECT_EQ(bundle.files, 6u);
  EXPECT_EQ(bundle.bytes, fs::file_size(zip()));
  const auto original = Trace::Open(dir()).value();
  std::string unpacked;
  {
    const auto trace = Trace::Open(zip()).value();
    unpacked = trace->directory();
    EXPECT_EQ(trace->path(), zip());
    ASSERT_EQ(trace->ranks().size(), 3u);
    for (const uint32_t rank : {0u, 1u, 5u}) {
      EXPECT_EQ(Events(*trace->Rank(rank).value()), Events(*original->Rank(rank).value()));
    }
    EXPECT_EQ(samples::FileBytes(unpacked + "/rank-00005/payloads.deja"),
              samples::FileBytes(dir() + "/rank-00005/payloads.deja"));
    EXPECT_EQ(fs::status(unpacked).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(unpacked)) << "the temporary folder outlived the trace";
}

TEST_F(TraceTest, ABundleDoesNotReplaceAFile) {
  samples::WriteFileBytes(zip(), {std::byte{1}});
  EXPECT_EQ(WriteBundle(dir(), zip()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(fs::file_size(zip()), 1u);
}

TEST_F(TraceTest, ABundleOfAnUnfinishedRankIsFinished) {
  const SampleRank torn = MakeSampleRank({.rank = 5, .finished = false});
  Add(5, torn);
  const std::vector<std::byte> before = samples::FileBytes(dir() + "/rank-00005/events.deja");
  ASSERT_TRUE(WriteBundle(dir(), zip()));
  EXPECT_EQ(samples::FileBytes(dir() + "/rank-00005/events.deja"), before);
  const auto trace = Trace::Open(zip()).value();
  const RankReader* reader = trace->Rank(5).value();
  EXPECT_EQ(reader->end().state, EndState::kCleanEnd);
  EXPECT_EQ(reader->totals().swept, 1u);
  EXPECT_EQ(Events(*reader), torn.events);
  EXPECT_EQ(reader->payloads().size(), torn.payloads.size());
  const VerifyReport report = Verify(*trace, {}).value();
  EXPECT_THAT(report.problems, IsEmpty());
}

TEST_F(TraceTest, NothingButTheFilesOfRanksIsTakenOutOfABundle) {
  const SampleRank rank = MakeSampleRank();
  const std::string events = Text(rank.events_file);
  MakeZip({{"../evil", "x"},
           {"/etc/evil", "x"},
           {"run.deja/../../evil", "x"},
           {"run.deja/rank-00000/../../../evil", "x"},
           {"run.deja/rank-00000/evil", "x"},
           {"run.deja/rank-00000/events.deja/evil", "x"},
           {"rank-00001/sub/events.deja", "x"},
           {"README", "x"},
           {"run.deja/rank-00000/events.deja", events},
           {"run.deja/rank-00000/payloads.deja", Text(rank.payloads_file)}});
  const auto trace = Trace::Open(zip()).value();
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(trace->directory())) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry, trace->directory()));
  }
  std::erase(files, ".deja-temporary");  // says what the folder is
  EXPECT_THAT(files,
              testing::UnorderedElementsAre("rank-00000/events.deja", "rank-00000/payloads.deja"));
  EXPECT_EQ(Events(*trace->Rank(0).value()), rank.events);
}

TEST_F(TraceTest, ABundleThatAnotherToolDeflatedIsReadToo) {
  const SampleRank rank = MakeSampleRank();
  MakeZip({{"rank-00000/events.deja", Text(rank.events_file), true},
           {"rank-00000/payloads.deja", Text(rank.payloads_file), true}});
  EXPECT_EQ(Events(*Trace::Open(zip()).value()->Rank(0).value()), rank.events);
}

TEST_F(TraceTest, AZipBombIsRefused) {
  MakeZip({{"rank-00000/events.deja", std::string(50 << 20, '\0'), true}});
  EXPECT_LT(fs::file_size(zip()), 100'000u);
  const auto trace = Trace::Open(zip());
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, ErrorCode::kLimit);
}

TEST_F(TraceTest, TheSameFileTwiceInABundleIsRefused) {
  const std::string events = Text(MakeSampleRank().events_file);
  MakeZip({{"rank-00000/events.deja", events}, {"run.deja/rank-00000/events.deja", events}});
  EXPECT_EQ(Trace::Open(zip()).error().code, ErrorCode::kCorrupt);
}

TEST_F(TraceTest, EveryCutOfABundleIsAnErrorAndLeavesNoFiles) {
  samples::ScratchFolder tmp;
  ASSERT_EQ(setenv("TMPDIR", tmp.path().c_str(), 1), 0);
  ASSERT_TRUE(WriteBundle(dir(), zip()));
  const std::vector<std::byte> whole = samples::FileBytes(zip());
  for (size_t size = 0; size < whole.size(); size += 97) {
    samples::WriteFileBytes(zip(), {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
    EXPECT_FALSE(Trace::Open(zip())) << size;
  }
  unsetenv("TMPDIR");
  EXPECT_TRUE(fs::is_empty(tmp.path()));
}

TEST_F(TraceTest, VerifyingAGoodTraceFindsNothingAndCountsEverything) {
  const auto trace = Trace::Open(dir()).value();
  uint64_t last = 0;
  uint64_t total = 0;
  const VerifyReport report = Verify(*trace, [&](uint64_t done, uint64_t all) {
                                EXPECT_GE(done, last);
                                last = done;
                                total = all;
                              }).value();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.ranks, 3u);
  EXPECT_EQ(report.events, 3 * MakeSampleRank().events.size());
  EXPECT_EQ(report.payloads, 3 * MakeSampleRank().payloads.size());
  EXPECT_GT(report.payload_bytes, 0u);
  EXPECT_EQ(report.events_lost, 0u);
  EXPECT_EQ(report.payloads_missing, 0u);
  EXPECT_EQ(last, total);
}

TEST_F(TraceTest, VerifyingNamesWhatIsDamaged) {
  SampleRank rank = MakeSampleRank({.rank = 1});
  rank.events_file[rank.events_file.size() / 3] ^= std::byte{4};
  rank.payloads_file[rank.payloads_file.size() / 2] ^= std::byte{4};
  Add(1, rank);
  const auto trace = Trace::Open(dir()).value();
  const VerifyReport report = Verify(*trace, {}).value();
  EXPECT_THAT(report.problems, Not(IsEmpty()));
  bool events = false;
  bool payloads = false;
  for (const VerifyProblem& problem : report.problems) {
    EXPECT_EQ(problem.rank, 1u);
    events = events || (problem.file == "events.deja" && problem.offset > 0);
    payloads = payloads || (problem.file == "payloads.deja" && problem.offset > 0);
  }
  EXPECT_TRUE(events);
  EXPECT_TRUE(payloads);
  EXPECT_EQ(report.payloads_missing, 1u);
  EXPECT_GT(report.events_lost, 0u);
}

TEST_F(TraceTest, VerifyingARankThatCannotBeOpenedIsAProblemAndNotAnError) {
  fs::resize_file(dir() + "/rank-00001/events.deja", 20);
  fs::remove(dir() + "/rank-00001/payloads.deja");
  const auto trace = Trace::Open(dir()).value();
  const VerifyReport report = Verify(*trace, {}).value();
  EXPECT_EQ(report.ranks, 3u);
  EXPECT_THAT(report.problems, Not(IsEmpty()));
  EXPECT_EQ(report.events, 2 * MakeSampleRank().events.size());
}

TEST_F(TraceTest, VerifyingATornRankSaysSo) {
  SampleRank rank = MakeSampleRank({.rank = 1, .finished = false});
  rank.events_file.resize(rank.events_file.size() - 5);
  Add(1, rank);
  const auto trace = Trace::Open(dir()).value();
  const VerifyReport report = Verify(*trace, {}).value();
  ASSERT_FALSE(report.problems.empty());
  EXPECT_THAT(report.problems[0].what, HasSubstr("stops inside"));
}

}  // namespace
}  // namespace deja::format
