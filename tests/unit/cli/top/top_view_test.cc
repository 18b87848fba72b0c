// What top says of ranks: waits, late ranks, rates; and that a page fits the screen.
#include "cli/top/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/top/top_text.h"
#include "tests/unit/cli/top/played_ranks.h"

namespace deja::cli {
namespace {

TEST(TopViewTest, RanksInAnOperationWaitForThoseThatHaveNotEnteredIt) {
  PlayedRanks played(4);
  played.AllReduce(100, 1, 0, 0);
  for (const uint32_t rank : {0u, 1u, 3u}) played.Enter(rank, 200, 2);
  const TopView view = MakeTopView("run.deja", played.ranks, PlayedRanks::Now(1200));
  ASSERT_EQ(view.waits.size(), 1u);
  EXPECT_EQ(view.waits[0].Describe(), "ranks 0-1,3 wait for rank 2 in AllReduce 2 of comm 0");
  EXPECT_EQ(view.waits[0].since_ns, 1000 * PlayedRanks::kMs);
  EXPECT_EQ(view.rows[0].doing, "in AllReduce #2 of comm 0");
  EXPECT_EQ(view.rows[2].doing, "after AllReduce #1 of comm 0");
  EXPECT_TRUE(view.stragglers.empty());
}

TEST(TopViewTest, AShortWaitIsWork) {
  PlayedRanks played(2);
  played.Enter(0, 200, 1);
  EXPECT_TRUE(MakeTopView("run.deja", played.ranks, PlayedRanks::Now(210)).waits.empty());
}

TEST(TopViewTest, AnOperationThatAllHaveEnteredIsUnderWay) {
  PlayedRanks played(2);
  played.Enter(0, 0, 1);
  played.Enter(1, 0, 1);
  const TopView view = MakeTopView("run.deja", played.ranks, PlayedRanks::Now(500));
  ASSERT_EQ(view.waits.size(), 1u);
  EXPECT_EQ(view.waits[0].Describe(), "ranks 0-1 are in AllReduce 1 of comm 0");
}

TEST(TopViewTest, ARankThatHasEndedWaitsForNoOther) {
  PlayedRanks played(2);
  played.Enter(0, 0, 1);
  played.ranks[0].is_running = false;
  played.ranks[0].exit_code = 1;
  const TopView view = MakeTopView("run.deja", played.ranks, PlayedRanks::Now(5000));
  EXPECT_TRUE(view.waits.empty());
  EXPECT_EQ(view.rows[0].state, "exit 1");
  EXPECT_EQ(view.running, 1u);
}

TEST(TopViewTest, ARankThatEntersLastAgainAndAgainIsLate) {
  PlayedRanks played(3);
  for (uint64_t i = 1; i <= 8; ++i) played.AllReduce(i * 100, i, 1, 40);
  const TopView view = MakeTopView("run.deja", played.ranks, PlayedRanks::Now(1000));
  ASSERT_EQ(view.stragglers, (std::vector<size_t>{1}));
  EXPECT_EQ(view.rows[1].late_share, 1.0);
  EXPECT_EQ(view.rows[1].waited_for_ns, 8 * 40 * PlayedRanks::kMs);
  EXPECT_EQ(view.rows[0].late_share, 0);
}

TEST(TopViewTest, AClockThatIsAheadMakesNoRankLate) {
  PlayedRanks played(3);
  for (uint64_t i = 1; i <= 8; ++i) played.AllReduce(i * 100, i, 1, 40);
  // Rank 2's machine is ten seconds ahead.
  for (auto& [seq, operation] : played.ranks[2].comms.at(0).recent) {
    operation.begin_ns += 10'000 * PlayedRanks::kMs;
    operation.end_ns += 10'000 * PlayedRanks::kMs;
  }
  const TopView view = MakeTopView("run.deja", played.ranks, PlayedRanks::Now(1000));
  EXPECT_EQ(view.stragglers, (std::vector<size_t>{1}));
}

TEST(TopViewTest, TheJobsStepIsThatOfItsSlowestRank) {
  PlayedRanks played(2);
  for (uint64_t i = 0; i < 40; ++i) played.Step(0, i * 100, i);
  for (uint64_t i = 0; i < 20; ++i) played.Step(1, i * 200, i);
  const TopView view = MakeTopView("run.deja", played.ranks, PlayedRanks::Now(4000));
  EXPECT_EQ(view.first_step, 19u);
  EXPECT_EQ(view.last_step, 39u);
  EXPECT_DOUBLE_EQ(view.steps_per_second, 5);
}

TEST(TopViewTest, JsonHasWhatThePageShows) {
  PlayedRanks played(2);
  played.Enter(0, 200, 1);
  const auto json = ToJson(MakeTopView("run.deja", played.ranks, PlayedRanks::Now(1200)));
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["waits"][0]["waiting"], std::vector<uint32_t>{0});
  EXPECT_EQ(json["waits"][0]["for"], std::vector<uint32_t>{1});
}

TEST(TopTextTest, APageFitsTheScreenAndScrollsWithinTheRanks) {
  PlayedRanks played(200);
  const TopView view = MakeTopView("run.deja", played.ranks, PlayedRanks::Now(1000));
  for (const size_t lines : {1u, 5u, 10u, 24u, 300u}) {
    const TopPage page = MakeTopPage(view, 40, lines, 1000);
    EXPECT_LE(page.lines.size(), lines);
    for (const std::string& line : page.lines) EXPECT_LE(line.size(), 40u);
  }
  const TopPage last = MakeTopPage(view, 100, 24, 1000);
  EXPECT_NE(last.lines[last.lines.size() - 2].find(" 199 "), std::string::npos);
  EXPECT_EQ(MakeTopPage(view, 100, 24, 3).first_row, 3u);
}

TEST(TopTextTest, StringsOfTheTraceAreText) {
  PlayedRanks played(2);
  for (LiveRank& rank : played.ranks) {
    rank.comms.at(0).name = "\x1b[2J\nnext\u202e";
    rank.host = "\x1b]0;x\a";
  }
  played.Enter(0, 0, 1);
  TopView view = MakeTopView("\x1b[2Jrun", played.ranks, PlayedRanks::Now(500));
  view.notes = {"\x1b[2J\n"};
  std::vector<std::string> lines = TopLines(view, 8);
  for (std::string& line : MakeTopPage(view, 200, 24, 0).lines) lines.push_back(std::move(line));
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_EQ(line.find("\u202e"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace deja::cli
