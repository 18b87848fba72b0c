// Completions of the command line for bash, zsh and fish, made from the commands' own definitions.
//
// Pure functions; main thread only.
#ifndef DEJA_CLI_HELP_COMPLETION_H_
#define DEJA_CLI_HELP_COMPLETION_H_

#include <string>
#include <vector>

#include "cli/help/command_line.h"

namespace deja::cli {

// "bash", "zsh", "fish"
const std::vector<std::string>& CompletedShells();

// The script, for one of these.
std::string CompletionScript(const std::string& shell, const CommandLine& line);

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_COMPLETION_H_
