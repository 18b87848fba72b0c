// JobFacts: the lines of `deja info` about a job: program, machine, versions. Also the head of a
// report.
//
// Pure functions over a rank's header; values.
#ifndef DEJA_CLI_SUMMARIES_JOB_FACTS_H_
#define DEJA_CLI_SUMMARIES_JOB_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/reader/rank_reader.h"

namespace deja::cli {

struct JobFact {
  std::string name;  // "program"
  std::string value;
};

std::vector<JobFact> JobFacts(const format::RankReader& first);

// "full"
std::string LevelName(uint32_t level);

// "2026-05-01 12:00:00 UTC"
std::string WallTime(uint64_t ns);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_JOB_FACTS_H_
