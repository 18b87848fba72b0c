// deja: the command line. Parses, runs one command, maps errors to exit codes; everything else is
// in cmd_*.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "cli/command.h"
#include "cli/help/command_line.h"
#include "cli/help/nearest_name.h"
#include "cli/help/option_list.h"
#include "cli/output.h"
#include "cli/replay/start/fenced_start.h"
#include "format/trace/temporary_folder.h"

namespace deja::cli {
namespace {

int UsageError(const std::string& message, const std::string& command) {
  Diagnose(message);
  Diagnose(command.empty() ? "see `deja --help`, or `deja COMMAND --help`"
                           : fmt::format("see `deja {} --help`", command));
  return kExitUsage;
}

// The first word that neither an option nor an argument takes.
std::string DescribeExtra(const CLI::App& app, const std::string& who) {
  const std::vector<std::string> words = app.remaining();
  const auto option =
      std::find_if(words.begin(), words.end(), [](const auto& word) { return word[0] == '-'; });
  if (option == words.end())
    return fmt::format("{}: '{}' is one argument too many", who, words.front());
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("{}: there is no option '{}'{}", who, name,
                     DidYouMean(name, OptionNames(ListOptions(app))));
}

// What is wrong with the command line.
int Explain(const CLI::ParseError& error, const CommandLine& line) {
  for (CLI::App* command : line.commands) {
    if (!command->parsed()) continue;
    const std::string& name = command->get_name();
    return UsageError(command->remaining().empty() ? fmt::format("{}: {}", name, error.what())
                                                   : DescribeExtra(*command, name),
                      name);
  }
  return UsageError(line.app->remaining().empty() ? error.what() : DescribeExtra(*line.app, "deja"),
                    "");
}

int Run(int argc, char** argv) {
  Context context;
  auto separator =
      std::find_if(argv + 1, argv + argc, [](const char* a) { return std::strcmp(a, "--") == 0; });
  bool has_program = separator != argv + argc;
  if (has_program) context.program.assign(separator + 1, argv + argc);

  const CommandLine line = MakeCommandLine(context.json);
  if (argc > 1 && argv[1][0] != '-' && line.Find(argv[1]) == nullptr) {
    const std::string near = DidYouMean(argv[1], CommandNames());
    Diagnose(fmt::format("there is no command '{}'{}", argv[1],
                         near.empty() ? "; `deja --help` lists them" : near));
    return kExitUsage;
  }
  try {
    line.app->parse(static_cast<int>(separator - argv), argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return line.app->exit(e) == 0 ? kExitOk : kExitUsage;
    return Explain(e, line);
  }
  const auto commands = Commands();
  for (size_t i = 0; i < commands.size(); ++i) {
    const Command& command = *commands[i];
    if (!line.commands[i]->parsed()) continue;
    if (has_program && !command.takes_program) {
      Diagnose(fmt::format("{}: it takes no program after `--`; see `deja {} --help`", command.name,
                           command.name));
      return kExitUsage;
    }
    return command.run(context);
  }
  return kExitUsage;
}

}  // namespace
}  // namespace deja::cli

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], deja::cli::kRunFenced) == 0)
    return deja::cli::RunFenced(argc, argv);
  const int code = deja::cli::Run(argc, argv);
  deja::format::AwaitEndBySignal();
  return code;
}
