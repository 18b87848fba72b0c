// What is said of a window of payloads.
#include "cli/summaries/window_summary.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

WindowSummary Summary(std::vector<std::pair<uint64_t, uint64_t>> steps) {
  WindowSummary summary;
  summary.kept_steps = std::move(steps);
  summary.keeps_any = true;
  summary.payloads_dropped = 3;
  summary.payload_bytes_dropped = 1200;
  return summary;
}

TEST(WindowSummaryTest, OneStepIsOne) {
  EXPECT_EQ(Summary({{850, 850}}).Describe(),
            "the payloads of step 850 are kept; 3 older ones (1.20 kB) were dropped");
  EXPECT_EQ(Summary({{850, 851}}).Describe(),
            "the payloads of steps 850 to 851 are kept; 3 older ones (1.20 kB) were dropped");
  EXPECT_EQ(Summary({{7, 7}, {9, 9}}).Describe(),
            "the payloads of steps 7, 9 are kept; 3 older ones (1.20 kB) were dropped");
}

TEST(WindowSummaryTest, NoStepKept) {
  WindowSummary summary = Summary({});
  EXPECT_EQ(summary.Describe(), "the last payloads are kept; 3 older ones (1.20 kB) were dropped");
  summary.keeps_any = false;
  EXPECT_EQ(summary.Describe(), "no payload is kept; 3 older ones (1.20 kB) were dropped");
}

}  // namespace
}  // namespace deja::cli
