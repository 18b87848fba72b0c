#include "common/input_rule.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

namespace deja {
namespace {

// What the pattern means, one character at a time.
bool Matches(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*')
    return Matches(text, pattern.substr(1)) || (!text.empty() && Matches(text.substr(1), pattern));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         Matches(text.substr(1), pattern.substr(1));
}

std::string Draw(std::mt19937& random, std::string_view letters, size_t most) {
  std::string text(random() % (most + 1), ' ');
  for (char& letter : text) letter = letters[random() % letters.size()];
  return text;
}

TEST(PathPatternTest, RandomPatternsMeanWhatTheirCharactersMean) {
  std::mt19937 random(7);
  int matches = 0;
  for (int i = 0; i < 50000; ++i) {
    const std::string text = Draw(random, "ab/", 8);
    const std::string pattern = Draw(random, "ab/*?*", 6);
    const bool expected = Matches(text, pattern);
    ASSERT_EQ(MatchesPathPattern(text, pattern), expected) << text << " " << pattern;
    matches += expected ? 1 : 0;
  }
  EXPECT_GT(matches, 1000);
}

TEST(PathPatternTest, StarsStandForAnythingAndQuestionMarksForOneCharacter) {
  EXPECT_TRUE(MatchesPathPattern("/data/a/b.bin", "/data/*"));
  EXPECT_TRUE(MatchesPathPattern("/data/a/b.bin", "*.bin"));
  EXPECT_TRUE(MatchesPathPattern("/data/a/b.bin", "/data/?/b*"));
  EXPECT_TRUE(MatchesPathPattern("/a/x/b/y/b", "/a/*/b"));
  EXPECT_TRUE(MatchesPathPattern("", "*"));
  EXPECT_FALSE(MatchesPathPattern("/data/ab/c", "/data/?/c"));
  EXPECT_FALSE(MatchesPathPattern("/data", "/data/*"));
  EXPECT_FALSE(MatchesPathPattern("/a/x/b/y", "/a/*/b"));
  EXPECT_FALSE(MatchesPathPattern("/Data", "/data"));
}

TEST(InputRuleTest, TheSystemAndCodeAreNoInputs) {
  const InputRule rule;
  for (const char* path :
       {"/usr/share/zoneinfo/UTC", "/etc/passwd", "/proc/self/maps", "/dev/null", "/opt/x/lib.txt",
        "/home/u/env/lib/python3.11/site-packages/torch/x.json", "/home/u/train.py",
        "/home/u/__pycache__/m.cpython-311.pyc", "/home/u/libmine.so", "/home/u/libmine.so.2.1",
        "relative", ""})
    EXPECT_FALSE(rule.IsInput(path)) << path;
  for (const char* path : {"/data/train.bin", "/home/u/config.json", "/tmp/x", "/usrlocal/x",
                           "/home/u/data/so.txt", "/home/u/usr/x"})
    EXPECT_TRUE(rule.IsInput(path)) << path;
}

TEST(InputRuleTest, ExcludedFilesAreNoInputsAndIncludedOnesAre) {
  const InputRule rule("/opt/data/*\n*.py\n", "*/cache/*");
  EXPECT_TRUE(rule.IsInput("/opt/data/a"));
  EXPECT_TRUE(rule.IsInput("/home/u/generated.py"));
  EXPECT_FALSE(rule.IsInput("/opt/other"));
  EXPECT_FALSE(rule.IsInput("/data/cache/a"));
  EXPECT_FALSE(rule.IsInput("/opt/data/cache/a"));
}

}  // namespace
}  // namespace deja
