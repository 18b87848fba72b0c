// How the command line speaks: results on stdout, diagnostics on stderr.
//
// All that leaves here is plain text (common/text/plain_text.h), whatever a trace says: one line is
// one line, and no control sequence reaches a terminal. Main thread only.
#ifndef DEJA_CLI_OUTPUT_H_
#define DEJA_CLI_OUTPUT_H_

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/result.h"

namespace deja::cli {

// A line of the result, on stdout.
void PrintLine(std::string_view line);
// A text of several lines, the last one ended, on stdout.
void PrintLines(std::string_view text);
// One JSON value on stdout, indented (-1: in one line); bytes that are not UTF-8 are replaced.
void PrintJson(const nlohmann::json& value, int indent = 2);
// "deja: MESSAGE" on stderr.
void Diagnose(std::string_view message);
// A question on stderr, after which the answer is typed.
void Prompt(std::string_view question);
// Diagnoses the error; returns kExitFailure, of a damaged trace kExitDataLoss.
int FailWith(const Error& error);

// "1.2 MB", "310 B": powers of 1000.
std::string HumanBytes(uint64_t bytes);
// "1,204"
std::string HumanCount(uint64_t count);
// "2.41 s", "350 us"
std::string HumanDuration(uint64_t ns);

}  // namespace deja::cli

#endif  // DEJA_CLI_OUTPUT_H_
