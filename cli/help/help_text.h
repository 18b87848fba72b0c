// What `--help` and `deja help` print of the commands, wrapped at kHelpColumns.
//
// Pure functions; main thread only.
#ifndef DEJA_CLI_HELP_HELP_TEXT_H_
#define DEJA_CLI_HELP_HELP_TEXT_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/help/option_list.h"

namespace deja::cli {

// One sentence: what Deja does.
inline constexpr const char* kDescription =
    "Deja records a distributed training run on every rank and replays any rank alone, bit for "
    "bit, in gdb.";

// "deja record [OPTION]... -- PROGRAM [ARGUMENT]..."
std::string UsageOf(const Command& command, const std::vector<OptionInfo>& options);

// The examples of a command line by line, none longer than kHelpColumns: a remark that does not fit
// beside its command is below it.
std::vector<std::string> ExampleLines(const Command& command);

std::string CommandHelp(const Command& command, const CLI::App& app);

// Help for `deja` itself: the commands in groups, the topics, its own options.
std::string ProgramHelp(const CLI::App& app);

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_HELP_TEXT_H_
