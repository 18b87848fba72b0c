// What a rank read of files outside the run, summed up for people.
//
// Pure over an open reader; allocates; any thread. Reads only the batches that tell of files.
#ifndef DEJA_CLI_SUMMARIES_INPUT_SUMMARY_H_
#define DEJA_CLI_SUMMARIES_INPUT_SUMMARY_H_

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "format/reader/rank_reader.h"

namespace deja::cli {

struct InputFileSummary {
  std::string path;
  uint64_t size = 0;
  uint64_t read = 0;  // bytes of it that the process was given, each counted once a recorded range
  uint64_t kept = 0;  // of these, bytes that are in the trace
  uint64_t lost = 0;  // bytes that could not be recorded
  bool missing = false;
};

struct InputSummary {
  uint32_t mode = 0;                    // TraceHeader.inputs
  std::vector<InputFileSummary> files;  // by path; several states of one file are one
  InputFileSummary total;

  // Lines for `deja info`, at most `most` of them for files; empty where nothing was read.
  [[nodiscard]] std::vector<std::string> Lines(size_t most) const;
};

InputSummary ReadInputSummary(const format::RankReader& reader);
nlohmann::json ToJson(const InputSummary& summary);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_INPUT_SUMMARY_H_
