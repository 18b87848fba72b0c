// The file of a summary: it is taken with the recording that it was made from, and with no other.
#include "check/evidence/summary_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/sample_trace.h"
#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

class SummaryFileTest : public testing::Test {
 protected:
  SummaryFileTest() {
    WriteEvents(std::string(200'000, 'e'));
    MadeJob made(2);
    for (int i = 0; i < 100; ++i) made.Do(1, AllReduce(8), "train.py", 1);
    summary_ = made[1];
  }
  void WriteEvents(const std::string& bytes) const {
    std::ofstream(folder() + "/events.deja", std::ios::binary) << bytes;
  }
  void Keep() const {
    const auto source = SummarySourceOf(folder());
    ASSERT_TRUE(source);
    const auto size = WriteSummaryFile(folder(), *source, "1.2.3", summary_);
    ASSERT_TRUE(size) << size.error().message;
    EXPECT_EQ(*size, std::filesystem::file_size(path()));
  }
  [[nodiscard]] std::string folder() const { return scratch_.path(); }
  [[nodiscard]] std::string path() const { return folder() + "/" + kSummaryFile; }
  // Why the summary is not taken; empty: it is.
  [[nodiscard]] std::string Refusal(const std::string& producer = "1.2.3") const {
    const auto read = ReadSummaryFile(folder(), producer);
    return read ? "" : read.error().message;
  }

  format::samples::ScratchFolder scratch_;
  RankSummary summary_;
};

TEST_F(SummaryFileTest, IsTakenWithItsRecording) {
  Keep();
  const auto read = ReadSummaryFile(folder(), "1.2.3");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank, 1u);
  EXPECT_EQ(read->comms[0].collectives.size(), 100u);
  Keep();  // it replaces the other
  EXPECT_EQ(Refusal(), "");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    (void)entry;
    ++files;
  }
  EXPECT_EQ(files, 2u);
}

TEST_F(SummaryFileTest, NoneIsNotFound) {
  const auto read = ReadSummaryFile(folder(), "1.2.3");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
}

TEST_F(SummaryFileTest, IsStaleAfterTheRecordingHasChanged) {
  Keep();
  WriteEvents(std::string(200'001, 'e'));
  EXPECT_NE(Refusal().find("the recording has changed"), std::string::npos) << Refusal();
  std::string events(200'000, 'e');
  events.back() = 'x';
  WriteEvents(events);
  EXPECT_NE(Refusal().find("the recording has changed"), std::string::npos) << Refusal();
}

TEST_F(SummaryFileTest, IsOfOneVersion) {
  Keep();
  EXPECT_NE(Refusal("1.2.4").find("another version"), std::string::npos);
}

TEST_F(SummaryFileTest, AnyDamageIsSeen) {
  Keep();
  std::string bytes(std::filesystem::file_size(path()), '\0');
  std::ifstream(path(), std::ios::binary).read(bytes.data(), static_cast<long>(bytes.size()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(path(), std::ios::binary) << damaged;
    EXPECT_NE(Refusal(), "") << "byte " << i;
    std::ofstream(path(), std::ios::binary) << bytes.substr(0, i);
    EXPECT_NE(Refusal(), "") << "cut at " << i;
  }
}

}  // namespace
}  // namespace deja::check
