// ReportPage: a report's data in its page: one HTML document that loads nothing.
//
// The document's policy lets run only its own script, by its digest. Data stands in a JSON block
// without the character that begins a tag; the script shows strings as text only. Pure.
#ifndef DEJA_CLI_REPORT_REPORT_PAGE_H_
#define DEJA_CLI_REPORT_REPORT_PAGE_H_

#include <nlohmann/json.hpp>
#include <string>

namespace deja::cli {

std::string ReportPage(const nlohmann::json& data);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPORT_REPORT_PAGE_H_
