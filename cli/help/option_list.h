// OptionList: what a command accepts, as data: read from the command's own CLI11 definition, so
// that help, manual pages and completions say the same.
//
// Values; main thread only.
#ifndef DEJA_CLI_HELP_OPTION_LIST_H_
#define DEJA_CLI_HELP_OPTION_LIST_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace deja::cli {

// The type name of options whose value is a file or folder.
inline constexpr const char* kPathType = "PATH";

struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--out"; of a positional argument its name: "TRACE"
  bool positional = false;
  bool required = false;
  bool repeats = false;              // may be given more than once
  std::string value;                 // "PATH", "N", "SIZE", "order|digest|full"; empty: a flag
  std::vector<std::string> choices;  // of the value; empty: anything
  bool is_path = false;              // the value is a file or folder
  std::string group;                 // the heading in the help
  std::string text;                  // what it does, with its default

  // "-o, --out PATH"
  [[nodiscard]] std::string Usage() const;
};

// In the order of the definition, the option --help first.
std::vector<OptionInfo> ListOptions(const CLI::App& app);

// Headings of options in the order in which they first occur, positional arguments left out.
std::vector<std::string> ListGroups(const std::vector<OptionInfo>& options);

// Names with dashes of all of them.
std::vector<std::string> OptionNames(const std::vector<OptionInfo>& options);

// The options that one heading of the help has below it.
struct OptionGroup {
  const char* title;
  std::vector<const char*> names;  // as "--out"
};
// Puts options that are defined already below headings.
void SetGroups(CLI::App& app, const std::vector<OptionGroup>& groups);

// Says of options that are defined already that their values are files or folders.
void SetPaths(CLI::App& app, const std::vector<const char*>& names);

// Adds the argument that names a trace. `name`: as the help shows it.
void AddTraceArgument(CLI::App& app, const char* name, std::string& path);

// Adds --binaries, for commands that name frames of stacks.
void AddBinariesOption(CLI::App& app, std::vector<std::string>& folders);

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_OPTION_LIST_H_
