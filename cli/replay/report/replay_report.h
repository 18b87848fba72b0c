// The report of a replay: lines of JSON that the replay library writes inside the program, read
// into the types of format/scratch/report_lines.def. The program may damage it: a line that does
// not have the fields of its kind is left out and described.
//
// Values; any thread.
#ifndef DEJA_CLI_REPLAY_REPORT_REPLAY_REPORT_H_
#define DEJA_CLI_REPLAY_REPORT_REPLAY_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/scratch/report_lines.h"

namespace deja::cli {

// ExitLine, CrashLine …: the lines of the table as this side reads them, and FramePart … their
// parts.
#define DEJA_REPORT_PART(Name, meaning) \
  using Name##Part = format::report::Name<format::report::Reading>;
#define DEJA_REPORT_LINE(Name, kind, meaning) \
  using Name##Line = format::report::Name<format::report::Reading>;
#define DEJA_REPORT_FIELD(type, name, meaning)
#define DEJA_REPORT_INLINE(type, name, meaning)
#define DEJA_REPORT_END
#include "format/scratch/report_lines.def"

struct ReportLine {
  format::report::AnyLine<format::report::Reading> line;
  std::string child;  // name of the process below the rank; empty: the rank itself
  bool cut = false;   // fields that were too long are missing

  // Null: it is of another kind.
  template <typename Line>
  [[nodiscard]] const Line* As() const {
    return std::get_if<Line>(&line);
  }
};

struct ReplayReport {
  std::vector<ReportLine> lines;    // in their order
  std::vector<std::string> damage;  // "line 3: no number in 'pid'"
};

// One line of the report, or what is wrong with it, in `problem`.
ReportLine ParseReportLine(std::string_view text, std::string& problem);

// The report's first 10,000 lines. `scratch`: the replay's scratch folder.
ReplayReport ReadReport(const std::string& scratch);

// The first line of a kind; null: none.
template <typename Line>
const Line* FindLine(const std::vector<ReportLine>& lines) {
  for (const ReportLine& line : lines)
    if (const Line* found = line.As<Line>()) return found;
  return nullptr;
}

// As the report has it.
nlohmann::json ToJson(const ReportLine& line);
nlohmann::json ToJson(const std::vector<ParkedPart>& parked);

// The report in `scratch` says that the replay was stopped before the program's end.
bool HasStopped(const std::string& scratch);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_REPORT_REPLAY_REPORT_H_
