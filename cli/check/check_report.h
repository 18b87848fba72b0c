// How the findings of `deja check` are printed: as text, on one page, or as JSON.
//
// Pure functions. `trace`: its path, for the commands to go on with.
#ifndef DEJA_CLI_CHECK_CHECK_REPORT_H_
#define DEJA_CLI_CHECK_CHECK_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/check.h"

namespace deja::cli {

std::vector<std::string> CheckLines(const check::Report& report, const std::string& trace,
                                    size_t ranks);
nlohmann::json CheckJson(const check::Report& report, const std::string& trace, size_t ranks);

}  // namespace deja::cli

#endif  // DEJA_CLI_CHECK_CHECK_REPORT_H_
