#include "cli/progress.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

constexpr uint64_t kElapsedSecond = 1'000'000'000;

TEST(Progress, TellsPartRateAndTimeLeft) {
  EXPECT_EQ(ProgressText("verifying run.deja", ProgressUnit::kBytes, 1'000'000'000, 4'000'000'000,
                         2 * kElapsedSecond),
            "verifying run.deja: 25 %, 1.00 GB of 4.00 GB, 500 MB/s, 6 s left");
  EXPECT_EQ(ProgressText("checking run.deja", ProgressUnit::kRanks, 3, 1024, 2 * kElapsedSecond),
            "checking run.deja: 0 %, 3 of 1,024 ranks, 1.5/s, 11m 21s left");
}

TEST(Progress, TellsNoRateBeforeThereIsOne) {
  EXPECT_EQ(ProgressText("reading", ProgressUnit::kFiles, 0, 7, kElapsedSecond),
            "reading: 0 %, 0 of 7 files");
}

TEST(Progress, TellsTheTimeWhereTheTotalIsNotKnown) {
  EXPECT_EQ(ProgressText("writing run.html", ProgressUnit::kBytes, 0, 0, 3 * kElapsedSecond),
            "writing run.html: 3 s");
}

TEST(Progress, NeverGoesBeyondAll) {
  EXPECT_EQ(ProgressText("reading", ProgressUnit::kFiles, 9, 7, kElapsedSecond),
            "reading: 100 %, 7 of 7 files, 7.0/s, 0 s left");
}

TEST(Progress, NamesAreText) {
  const std::string text =
      ProgressText("packing \x1b[2J\nx", ProgressUnit::kFiles, 1, 2, kElapsedSecond);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace deja::cli
