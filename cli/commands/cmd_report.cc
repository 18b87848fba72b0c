// deja report: one HTML file with what a trace shows.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/evidence/job.h"
#include "cli/check/check_places.h"
#include "cli/check/read_summaries.h"
#include "cli/command.h"
#include "cli/events/symbolizer.h"
#include "cli/help/option_list.h"
#include "cli/output.h"
#include "cli/output_name.h"
#include "cli/pack/staged_output.h"
#include "cli/progress.h"
#include "cli/report/report_data.h"
#include "cli/report/report_page.h"
#include "cli/version.h"
#include "common/os/file.h"

namespace deja::cli {
namespace {

struct ReportOptions {
  std::string trace;
  std::string out;
  std::vector<std::string> binaries;
};
ReportOptions g_report_options;

// Issue trackers take files of this size.
constexpr size_t kMostBytes = 2'000'000;
// Calls of a communicator that are kept, of all ranks together: 64 bytes each.
constexpr size_t kMostCalls = size_t{8} << 20;

void AddReportOptions(CLI::App& app) {
  app.add_option("TRACE", g_report_options.trace, "A trace directory or a bundle")->required();
  app.add_option("-o,--out", g_report_options.out,
                 "The file to write (default: TRACE's name with .html, in the working directory)");
  AddBinariesOption(app, g_report_options.binaries);
  SetPaths(app, {"--out"});
}

// The page, with as much of the timeline as fits.
std::string PageOf(const ReportSource& source, const check::Job& job, const check::Report& report) {
  TimelineLimits limits;
  for (;;) {
    std::string page = ReportPage(ReportData(source, job, report, limits));
    if (page.size() <= kMostBytes || limits.parts + limits.operations < 1000) return page;
    limits.parts /= 2;
    limits.operations /= 2;
  }
}

Status WritePage(const std::string& path, const std::string& page) {
  auto staged = StagedOutput::For(path);
  if (!staged) return tl::unexpected(staged.error());
  auto file = CreateAppendFile(staged->path());
  if (!file) return tl::unexpected(file.error());
  DEJA_RETURN_IF_ERROR((*file)->Append(std::as_bytes(std::span(page)), {}));
  auto published = staged->Publish({staged->path()});
  if (!published) return tl::unexpected(published.error());
  return {};
}

int RunReport(const Context& context) {
  const std::string out = g_report_options.out.empty()
                              ? OutputNameFor(g_report_options.trace, ".html")
                              : g_report_options.out;
  Symbolizer symbolizer;
  for (const std::string& directory : g_report_options.binaries) symbolizer.AddDirectory(directory);
  CheckPlaces places(symbolizer);
  ReportSource source;
  source.trace = g_report_options.trace;
  source.made_by = fmt::format("deja {}", kVersion);
  ReadSummariesOptions options;
  options.operation = "reading";
  options.window_of_all = kMostCalls;
  options.on_rank = [&](const format::RankReader& reader, const check::RankSummary& summary) {
    if (source.ranks.empty()) {
      source.facts = JobFacts(reader);
      source.packages = ReadProgramParts(reader).packages;
      source.series_rank = summary.rank;
      source.series = ReadNumberSeries(reader, summary, {});
    }
    source.ranks[summary.rank] = ReadRankFacts(reader);
  };
  auto read = ReadSummaries(g_report_options.trace, places, options);
  if (!read) return FailWith(read.error());
  Progress progress("comparing " + g_report_options.trace);
  const check::Job job(std::move(read->ranks));
  check::Report report = check::Check(job);
  report.notes.insert(report.notes.end(), read->notes.begin(), read->notes.end());
  report.is_damaged = report.is_damaged || read->is_damaged;
  progress.Begin("writing " + out);
  const std::string page = PageOf(source, job, report);
  if (const Status written = WritePage(out, page); !written) return FailWith(written.error());
  if (context.json) {
    PrintJson({{"report", out},
               {"bytes", page.size()},
               {"ranks", job.ranks.size()},
               {"findings", report.findings.size()},
               {"damaged", report.is_damaged}});
  } else {
    PrintLine(fmt::format("{}: {}, {} rank{}, {} finding{}", out, HumanBytes(page.size()),
                          job.ranks.size(), job.ranks.size() == 1 ? "" : "s",
                          report.findings.size(), report.findings.size() == 1 ? "" : "s"));
  }
  return report.is_damaged ? kExitDataLoss : kExitOk;
}

}  // namespace

extern const Command kReportCommand;
const Command kReportCommand = {
    "report",
    "Write one HTML file: the findings, all ranks over time, waits, numbers, versions",
    "  deja report run.deja                       writes run.html\n"
    "  deja report run.deja.zip -o report.html\n"
    "  deja report run.deja --json                where it is, its size, how many findings\n",
    false,
    AddReportOptions,
    RunReport,
};

}  // namespace deja::cli
