// TimelineData: a job's operations as a report carries them: bounded, whatever their number.
//
// Three levels. A heat map has all operations, as parts of time that ranks spent in them. A list
// has the operations that fit, each with its begin, its meeting and its end. The ones that matter
// most also have a bar for each rank. Pure; one thread.
#ifndef DEJA_CLI_REPORT_TIMELINE_DATA_H_
#define DEJA_CLI_REPORT_TIMELINE_DATA_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "check/check.h"
#include "check/evidence/job.h"
#include "check/timeline/timeline.h"

namespace deja::cli {

struct TimelineLimits {
  size_t operations = 20'000;  // in the list
  size_t parts = 160'000;      // bars of ranks, of all operations together
};

// Times are microseconds since `origin_ns`. cli/report/README.md has the fields.
nlohmann::json TimelineData(const check::Job& job,
                            const std::vector<check::JoinedOperation>& operations,
                            const check::Report& report, uint64_t origin_ns,
                            const TimelineLimits& limits);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPORT_TIMELINE_DATA_H_
