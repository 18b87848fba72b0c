// Manual pages of the commands, in the language of groff's man macros, made from the commands'
// own definitions.
//
// Pure functions; main thread only.
#ifndef DEJA_CLI_HELP_MAN_PAGE_H_
#define DEJA_CLI_HELP_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>

#include "cli/command.h"

namespace deja::cli {

// deja(1): the commands, the topics of `deja help`, the exit status.
std::string ProgramManPage(const CLI::App& app);

// deja-record(1) and so on.
std::string CommandManPage(const Command& command, const CLI::App& app);

// "deja-record.1"; "deja.1" for null.
std::string ManPageFile(const Command* command);

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_MAN_PAGE_H_
