// The report's page: hostile strings stay text, its size stays bounded, its policy names its
// script.
#include "cli/report/report_page.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/report/page_parts.h"
#include "cli/report/report_data.h"
#include "tests/unit/check/made_job.h"

namespace deja::cli {
namespace {

const std::string kHostile = "</script><img src=x onerror=alert(1)>\x1b]0;owned\x07\u202e<!--";

// The block of data, as a browser finds it.
std::string DataOf(const std::string& page) {
  const std::string open = "id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script", begin) - begin);
}

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// A job and what was read of it, with hostile strings wherever a trace has strings.
struct Hostile {
  Hostile() : job(Ranks()) {
    report = check::Check(job);
    check::Finding finding;
    finding.sentence = finding.comm = kHostile;
    finding.sides.push_back({{0}, kHostile, {{kHostile, 1, kHostile}}, std::nullopt, 0});
    finding.agreed = finding.sides.front();
    finding.evidence = finding.next = {kHostile};
    finding.consequences.push_back({check::Kind::kMissing, kHostile});
    report.findings.push_back(finding);
    report.notes.push_back(kHostile);
    source.trace = source.made_by = kHostile;
    source.facts = {{kHostile, kHostile}};
    source.packages[kHostile][kHostile] = kHostile;
    source.ranks[0].host = kHostile;
    NumberSeries series;
    series.title = kHostile;
    series.points = {{1, 2.0, false}, {2, 0, true}};
    source.series = {series};
  }
  static std::vector<check::RankSummary> Ranks() {
    check::MadeJob made(2);
    made.All(check::AllReduce(8), kHostile, 8);
    made[0].surroundings = {{kHostile, kHostile}};
    made[0].last_call = made[0].unknown = made[0].end.exception = kHostile;
    made[0].is_partial = true;
    made[0].comms[0].name = kHostile;
    return {made[0], made[1]};
  }

  check::Job job;
  check::Report report;
  ReportSource source;
};

TEST(ReportPage, HostileStringsAreNoMarkup) {
  const Hostile hostile;
  const std::string page = ReportPage(ReportData(hostile.source, hostile.job, hostile.report, {}));
  // The page's own ones.
  EXPECT_EQ(Count(page, "</script"), 2u);
  EXPECT_EQ(Count(page, "<img"), 0u);
  EXPECT_EQ(Count(page, "<!--"), 0u);
  const std::string data = DataOf(page);
  EXPECT_EQ(data.find('<'), std::string::npos);
  EXPECT_EQ(data.find('\x1b'), std::string::npos);
  const auto parsed = nlohmann::json::parse(data);
  // Text, with its controls written out.
  EXPECT_EQ(parsed["trace"],
            "</script><img src=x onerror=alert(1)>\\x1b]0;owned\\x07\\u{202e}<!--");
  EXPECT_EQ(parsed["verdict"]["findings"].back()["sentence"], parsed["trace"]);
  EXPECT_EQ(parsed["timeline"]["comms"][0]["given"], parsed["trace"]);
  EXPECT_EQ(parsed["ranks"][0]["host"], parsed["trace"]);
  for (const std::string raw : {"\x1b", "\u202e"}) EXPECT_EQ(page.find(raw), std::string::npos);
}

TEST(ReportPage, ThePolicyLetsRunOnlyItsOwnScript) {
  const std::string page = ReportPage(nlohmann::json::object());
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("unsafe"), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
  for (const std::string_view part : {kPageCss, kPageJs}) {
    EXPECT_EQ(part.find("http://www.w3.org/1999"), std::string_view::npos);
    EXPECT_EQ(part.find("innerHTML"), std::string_view::npos);
    EXPECT_EQ(part.find("</script"), std::string_view::npos);
  }
}

TEST(ReportPage, LongStringsAreCut) {
  Hostile hostile;
  hostile.source.facts = {{"program", std::string(1 << 20, 'x')}};
  hostile.report.notes.assign(100'000, "a note");
  const std::string page = ReportPage(ReportData(hostile.source, hostile.job, hostile.report, {}));
  EXPECT_LT(page.size(), 200'000u);
}

}  // namespace
}  // namespace deja::cli
