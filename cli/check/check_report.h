// How the findings of `deja check` are printed: as text, on one page, or as JSON.
//
// Pure functions.
#ifndef DEJA_CLI_CHECK_CHECK_REPORT_H_
#define DEJA_CLI_CHECK_CHECK_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "check/check.h"

namespace deja::cli {

// What was checked: its path, for the commands to go on with, and how many ranks it has.
struct CheckedTrace {
  std::string path;
  size_t ranks = 0;
  std::optional<uint32_t> attempt = std::nullopt;  // where it is not the last one
};

std::vector<std::string> CheckLines(const check::Report& report, const CheckedTrace& trace);
nlohmann::json CheckJson(const check::Report& report, const CheckedTrace& trace);
// The same of one finding, on one line: "left-early: rank 1 ended before …"
std::string ShortLine(const check::Finding& finding);

}  // namespace deja::cli

#endif  // DEJA_CLI_CHECK_CHECK_REPORT_H_
