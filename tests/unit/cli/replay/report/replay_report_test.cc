// The report of a replay, written as the replay library does and read as the command line does.
#include "cli/replay/report/replay_report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <memory>

#include "format/scratch/json_line.h"
#include "format/scratch/line_writer.h"
#include "format/scratch/scratch_names.h"
#include "tests/support/temp_dir.h"

namespace deja::cli {
namespace {

using format::JsonLine;
using format::report::FieldsOf;
using format::report::Hex;
using format::report::Real;
using format::report::Writing;
using nlohmann::json;

// Gives each field of a line a value of its own.
class Filler {
 public:
  void operator()(const char* /*name*/, std::string_view& text) {
    texts_.push_back(std::make_unique<std::string>("text " + std::to_string(++count_)));
    text = *texts_.back();
  }
  void operator()(const char* /*name*/, bool& value) { value = true; }
  template <typename T>
  std::enable_if_t<std::is_integral_v<T>> operator()(const char* /*name*/, T& value) {
    value = std::numeric_limits<T>::max() - static_cast<T>(++count_);
  }
  void operator()(const char* /*name*/, Real& real) { real.value = 0.1 + ++count_; }
  void operator()(const char* /*name*/, Hex<Writing>& hex) { hex.bytes = "\x01\xff"; }
  template <typename T>
  void operator()(const char* name, std::optional<T>& field) {
    (*this)(name, field.emplace());
  }
  template <template <typename> class Part>
  void operator()(const char* /*name*/, Part<Writing>& part) {
    FieldsOf<Part>::Visit(part, *this);
  }
  template <template <typename> class Part>
  void operator()(const char* name, std::span<const Part<Writing>>& list) {
    auto parts = std::make_shared<std::vector<Part<Writing>>>(2);
    for (Part<Writing>& part : *parts) (*this)(name, part);
    list = *parts;
    lists_.push_back(parts);
  }
  template <template <typename> class Part>
  void Inline(std::optional<Part<Writing>>& part) {
    FieldsOf<Part>::Visit(part.emplace(), *this);
  }

 private:
  int count_ = 0;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<std::shared_ptr<void>> lists_;
};

template <template <typename> class Line>
std::string Written(const Line<Writing>& line) {
  JsonLine out(Line<Writing>::kKind);
  format::report::WriteFields(line, out);
  return std::string(out.Finish());
}

// A line of each kind with all of its fields, as JSON.
std::vector<json> AllKinds() {
  std::vector<json> lines;
  Filler filler;
#define DEJA_REPORT_PART(Name, meaning)
#define DEJA_REPORT_LINE(Name, kind, meaning)                          \
  {                                                                    \
    format::report::Name<Writing> line;                                \
    FieldsOf<format::report::Name>::Visit(line, filler);               \
    lines.push_back(json::parse(Written<format::report::Name>(line))); \
  }
#define DEJA_REPORT_FIELD(type, name, meaning)
#define DEJA_REPORT_INLINE(type, name, meaning)
#define DEJA_REPORT_END
#include "format/scratch/report_lines.def"
  return lines;
}

TEST(ReplayReport, EveryKindIsReadAsItIsWritten) {
  const std::vector<json> kinds = AllKinds();
  EXPECT_EQ(kinds.size(), std::variant_size_v<format::report::AnyLine<Writing>> - 1);
  for (const json& line : kinds) {
    std::string problem;
    const ReportLine read = ParseReportLine(line.dump(), problem);
    EXPECT_EQ(problem, "");
    EXPECT_EQ(ToJson(read), line);
    EXPECT_EQ(read.line.index() == 0, false) << line;
  }
}

TEST(ReplayReport, AFieldThatIsMissingOrOfAnotherTypeIsDamage) {
  for (const json& line : AllKinds()) {
    size_t needed = 0;
    for (const auto& [name, value] : line.items()) {
      if (name == "kind") continue;
      json damaged = line;
      damaged[name] = json{{"x", 1}};
      std::string problem;
      (void)ParseReportLine(damaged.dump(), problem);
      EXPECT_NE(problem, "") << line["kind"] << " " << name;
      damaged.erase(name);
      problem.clear();
      (void)ParseReportLine(damaged.dump(), problem);
      EXPECT_TRUE(problem.empty() || problem == "no '" + name + "'") << problem;
      needed += problem.empty() ? 0 : 1;
    }
    EXPECT_GT(needed, 0u) << line["kind"];
  }
}

TEST(ReplayReport, ANumberThatDoesNotFitIsDamage) {
  for (const char* pid : {"-1", "4294967296", "1.5", "\"7\"", "true"}) {
    std::string problem;
    (void)ParseReportLine(R"({"kind":"exit","how":)" + std::string(pid) + "}", problem);
    EXPECT_EQ(problem, "no number that fits in 'how'") << pid;
  }
}

TEST(ReplayReport, TextsKeepTheirBytes) {
  const std::string text("/home/j\xc3\xbcrgen/\xff\x01\"\\", 17);
  std::string problem;
  const ReportLine read = ParseReportLine(Written<format::report::Held>({.text = text}), problem);
  ASSERT_NE(read.As<HeldLine>(), nullptr) << problem;
  EXPECT_EQ(read.As<HeldLine>()->text, text);
}

TEST(ReplayReport, NumbersThatAreNoneKeepTheirNames) {
  format::report::Divergence<Writing> line;
  line.live_stats.emplace();
  line.live_stats->min = {-std::numeric_limits<double>::infinity()};
  line.live_stats->sum = {std::numeric_limits<double>::quiet_NaN()};
  const std::string text = Written<format::report::Divergence>(line);
  std::string problem;
  const ReportLine read = ParseReportLine(text, problem);
  ASSERT_NE(read.As<DivergenceLine>(), nullptr) << problem;
  EXPECT_EQ(read.As<DivergenceLine>()->live_stats->min.value,
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ToJson(read), json::parse(text));
}

TEST(ReplayReport, ALineThatIsTooLongIsCutAndStillRead) {
  const std::string message(20000, 'x');
  std::string problem;
  const ReportLine read = ParseReportLine(
      Written<format::report::Failed>({.message = message, .counters = std::nullopt}), problem);
  EXPECT_EQ(problem, "");
  ASSERT_NE(read.As<FailedLine>(), nullptr);
  EXPECT_TRUE(read.cut);
  EXPECT_EQ(read.As<FailedLine>()->message, "");
}

TEST(ReplayReport, DamagedLinesAreLeftOutAndDescribed) {
  const TempDir folder;
  std::ofstream(folder.path() + format::kReportFile) << R"({"kind":"start","pid":7,"child":"0/1"})"
                                                     << "\nno json\n"
                                                     << R"({"kind":"dance"})"
                                                     << "\n"
                                                     << R"({"kind":"start","pid":"x"})"
                                                     << "\n"
                                                     << R"({"kind":"exit","how":0})";
  const ReplayReport report = ReadReport(folder.path());
  ASSERT_EQ(report.lines.size(), 2u);
  EXPECT_EQ(report.lines[0].child, "0/1");
  EXPECT_EQ(FindLine<StartLine>(report.lines)->pid, 7);
  EXPECT_FALSE(FindLine<ExitLine>(report.lines)->code);
  EXPECT_FALSE(FindLine<ExitLine>(report.lines)->counters);
  EXPECT_EQ(report.damage, (std::vector<std::string>{
                               "line 2: no JSON object with a kind",
                               "line 3: 'dance' is no kind of line",
                               "line 4: no number that fits in 'pid'",
                           }));
}

}  // namespace
}  // namespace deja::cli
