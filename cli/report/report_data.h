// ReportData: all that a report of a job shows, as one JSON value of bounded size.
//
// Strings in it are plain text (common/text/plain_text.h), and none is longer than kLongestText.
// Pure; one thread.
#ifndef DEJA_CLI_REPORT_REPORT_DATA_H_
#define DEJA_CLI_REPORT_REPORT_DATA_H_

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/check.h"
#include "check/evidence/job.h"
#include "cli/report/number_series.h"
#include "cli/report/timeline_data.h"
#include "cli/summaries/job_facts.h"
#include "cli/summaries/program_parts.h"
#include "cli/summaries/rank_facts.h"

namespace deja::cli {

inline constexpr size_t kLongestText = 2000;  // bytes

// What was read of a trace for its report.
struct ReportSource {
  std::string trace;                    // its path
  std::string made_by;                  // "deja 1.2.3"
  std::vector<JobFact> facts;           // of the first rank
  std::map<uint32_t, RankFacts> ranks;  // by number
  std::map<std::string, Packages> packages;
  uint32_t series_rank = 0;  // the rank of `series`
  std::vector<NumberSeries> series;
};

// `limits`: of the timeline; the other parts have limits of their own.
nlohmann::json ReportData(const ReportSource& source, const check::Job& job,
                          const check::Report& report, const TimelineLimits& limits);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPORT_REPORT_DATA_H_
