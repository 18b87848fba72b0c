#include "cli/help/command_line.h"

#include "cli/help/help_text.h"
#include "cli/version.h"

namespace deja::cli {

CLI::App* CommandLine::Find(std::string_view name) const {
  for (CLI::App* command : commands)
    if (command->get_name() == name) return command;
  return nullptr;
}

CommandLine MakeCommandLine(bool& json) {
  CommandLine line;
  line.app = std::make_unique<CLI::App>("", "deja");
  line.app->set_version_flag("--version", std::string("deja ") + kVersion, "Print the version");
  line.app->get_help_ptr()->description("Print this help");
  line.app->require_subcommand(1);
  line.app->formatter_fn([](const CLI::App* app, const std::string&, CLI::AppFormatMode) {
    return ProgramHelp(*app);
  });
  for (const Command* command : Commands()) {
    CLI::App* sub = line.app->add_subcommand(command->name, command->summary);
    sub->get_help_ptr()->description("Print this help");
    command->add_options(*sub);
    sub->add_flag("--json", json, "Print the result as JSON");
    sub->formatter_fn([command](const CLI::App* app, const std::string&, CLI::AppFormatMode) {
      return CommandHelp(*command, *app);
    });
    line.commands.push_back(sub);
  }
  return line;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command* command : Commands()) names.emplace_back(command->name);
  return names;
}

}  // namespace deja::cli
