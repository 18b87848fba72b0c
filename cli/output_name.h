// The name of a file that a command makes of a trace, where the user gives none.
//
// Pure; any thread.
#ifndef DEJA_CLI_OUTPUT_NAME_H_
#define DEJA_CLI_OUTPUT_NAME_H_

#include <string>
#include <string_view>

namespace deja::cli {

// "run.html" for "runs/run.deja" or "run.deja.zip", and the ending ".html".
std::string OutputNameFor(const std::string& trace, std::string_view ending);

}  // namespace deja::cli

#endif  // DEJA_CLI_OUTPUT_NAME_H_
