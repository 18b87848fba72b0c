// ExamplesHere: commands that could record something on this machine, for `deja record` without a
// program. Looks for launchers in PATH and starts nothing. Main thread.
#ifndef DEJA_CLI_RECORD_EXAMPLES_HERE_H_
#define DEJA_CLI_RECORD_EXAMPLES_HERE_H_

#include <string>
#include <vector>

namespace deja::cli {

// Lines, each a command and what it records; the launchers that are here first.
std::vector<std::string> ExamplesHere();

}  // namespace deja::cli

#endif  // DEJA_CLI_RECORD_EXAMPLES_HERE_H_
