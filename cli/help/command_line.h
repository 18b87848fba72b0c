// CommandLine: all commands and their options as CLI11 has them. The parser, the help, the manual
// pages and the completions are made from it.
//
// Main thread only. Parsing writes to variables of the commands' own files: one is parsed, once.
#ifndef DEJA_CLI_HELP_COMMAND_LINE_H_
#define DEJA_CLI_HELP_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace deja::cli {

struct CommandLine {
  std::unique_ptr<CLI::App> app;
  std::vector<CLI::App*> commands;  // in the order of Commands(); the app owns them

  // The command's own app; null: there is no such command.
  [[nodiscard]] CLI::App* Find(std::string_view name) const;
};

// `json`: where a parse leaves whether --json was given; outlives the command line.
CommandLine MakeCommandLine(bool& json);

// Their names, in the order of the help.
std::vector<std::string> CommandNames();

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_COMMAND_LINE_H_
