// Command: one verb of the command line. One cmd_<verb>.cc each; commands.cc has the one array of
// them.
//
// add_options binds the command's options to file-static variables of its own file; run is called
// once after a successful parse. The main thread only. Results go to stdout (text, or one JSON
// value with --json), everything else to stderr; the return value is an ExitCode (or, for `record`,
// the job's own exit code).
#ifndef DEJA_CLI_COMMAND_H_
#define DEJA_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/exit_codes.h"

namespace deja::cli {

struct Context {
  bool json = false;                 // --json
  std::vector<std::string> program;  // the words after `--`
};

struct Command {
  const char* name;
  const char* summary;   // one line
  const char* examples;  // lines "  deja …", shown at the end of the help
  bool takes_program;    // accepts `-- CMD…`
  void (*add_options)(CLI::App& app);
  int (*run)(const Context& context);
};

// Commands that the help lists below one heading.
struct CommandGroup {
  const char* title;
  std::vector<const Command*> commands;
};

// Constant; in the order of the help.
const std::vector<CommandGroup>& CommandGroups();
// The same without headings.
std::span<const Command* const> Commands();

}  // namespace deja::cli

#endif  // DEJA_CLI_COMMAND_H_
