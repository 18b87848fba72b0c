// ImportTrace: a trace made of what dumps of PyTorch's Flight Recorder say.
//
// It has operations, their places in the source and their times; no tensors, no inputs, no program.
// Main thread.
#ifndef DEJA_CLI_IMPORT_IMPORT_TRACE_H_
#define DEJA_CLI_IMPORT_IMPORT_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/import/flight_dump.h"
#include "common/result.h"

namespace deja::cli {

struct ImportSummary {
  uint32_t world_size = 0;
  uint64_t operations = 0;           // of all ranks
  std::vector<std::string> missing;  // what the dumps do not have, in words
};

// Writes the trace into `out`, which must not exist. `dumps`: by rank, at least one.
Result<ImportSummary> ImportTrace(const std::vector<FlightDump>& dumps, const std::string& out);

}  // namespace deja::cli

#endif  // DEJA_CLI_IMPORT_IMPORT_TRACE_H_
