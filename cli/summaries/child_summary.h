// What the recordings of a rank's children say: one line each, or a summary when there are many.
//
// Values; main thread.
#ifndef DEJA_CLI_SUMMARIES_CHILD_SUMMARY_H_
#define DEJA_CLI_SUMMARIES_CHILD_SUMMARY_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/events/symbolizer.h"
#include "format/trace/trace.h"

namespace deja::cli {

struct ChildRow {
  std::string name;  // "0/1", "0.2/3+1"
  uint32_t pid = 0;
  std::string program;  // its arguments, in one line
  std::string ended;
  bool ended_well = false;
  uint64_t events = 0;
  uint64_t bytes = 0;
  uint64_t lost = 0;
  std::string damage;  // of its events; empty: none
};

// The program that a process went on as by exec. Empty: the recording does not name it.
struct NextImage {
  std::string program;
  std::vector<std::string> argv;
};

// Nothing: the recorded process ended as the program that it was.
std::optional<NextImage> WasReplaced(const format::RankReader& reader);

// By name. What cannot be read says so in `ended`.
std::vector<ChildRow> ReadChildren(format::Trace& trace, const format::RankFolder& rank,
                                   Symbolizer& symbolizer);

// At most `most` lines for the children, first of all those that did not end well, and one for the
// others.
std::vector<std::string> ChildLines(const std::vector<ChildRow>& children, size_t most);

nlohmann::json ToJson(const std::vector<ChildRow>& children);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_CHILD_SUMMARY_H_
