// SurroundingsTable: what the ranks of a job ran on, where they differ in it.
//
// Pure; values.
#ifndef DEJA_CLI_REPORT_SURROUNDINGS_TABLE_H_
#define DEJA_CLI_REPORT_SURROUNDINGS_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/evidence/job.h"

namespace deja::cli {

struct ValueOfRanks {
  std::string value;  // empty: these ranks do not have it
  std::vector<uint32_t> ranks;
};

struct SurroundingsDifference {
  std::string name;  // "environment NCCL_PROTO"
  std::vector<ValueOfRanks> values;
};

// By name. Nothing that all ranks have alike is in it.
std::vector<SurroundingsDifference> DifferencesOf(const check::Job& job);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPORT_SURROUNDINGS_TABLE_H_
