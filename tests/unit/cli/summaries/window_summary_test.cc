// What is said of a window of payloads.
#include "cli/window_story.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

WindowStory Story(std::vector<std::pair<uint64_t, uint64_t>> steps) {
  WindowStory story;
  story.kept_steps = std::move(steps);
  story.keeps_any = true;
  story.payloads_dropped = 3;
  story.payload_bytes_dropped = 1200;
  return story;
}

TEST(WindowStoryTest, OneStepIsOne) {
  EXPECT_EQ(Story({{850, 850}}).Describe(),
            "the payloads of step 850 are kept; 3 older ones (1.20 kB) were dropped");
  EXPECT_EQ(Story({{850, 851}}).Describe(),
            "the payloads of steps 850 to 851 are kept; 3 older ones (1.20 kB) were dropped");
  EXPECT_EQ(Story({{7, 7}, {9, 9}}).Describe(),
            "the payloads of steps 7, 9 are kept; 3 older ones (1.20 kB) were dropped");
}

TEST(WindowStoryTest, WhereNoStepIsKept) {
  WindowStory story = Story({});
  EXPECT_EQ(story.Describe(), "the last payloads are kept; 3 older ones (1.20 kB) were dropped");
  story.keeps_any = false;
  EXPECT_EQ(story.Describe(), "no payload is kept; 3 older ones (1.20 kB) were dropped");
}

}  // namespace
}  // namespace deja::cli
