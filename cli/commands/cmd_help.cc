// deja help: a command, or a topic that several commands share, explained.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/help/command_line.h"
#include "cli/help/help_text.h"
#include "cli/help/help_topics.h"
#include "cli/help/nearest_name.h"
#include "cli/help/option_list.h"
#include "cli/output.h"

namespace deja::cli {
namespace {

std::string g_help_name;

std::vector<std::string> HelpNames() {
  std::vector<std::string> names = CommandNames();
  for (const HelpTopic& topic : HelpTopics()) names.emplace_back(topic.name);
  return names;
}

void AddHelpOptions(CLI::App& app) {
  app.add_option("TOPIC", g_help_name, "A command or a topic; all of them are listed without one")
      ->type_name("{" + CLI::detail::join(HelpNames(), ",") + "}");
}

nlohmann::json ToJson(const OptionInfo& option) {
  nlohmann::json json = {{"names", option.names}, {"text", option.text}};
  if (!option.value.empty()) json["value"] = option.value;
  if (!option.choices.empty()) json["choices"] = option.choices;
  if (option.positional) json["positional"] = true;
  if (option.required) json["required"] = true;
  if (option.repeats) json["repeats"] = true;
  if (!option.positional) json["group"] = option.group;
  return json;
}

nlohmann::json ToJson(const Command& command, const CLI::App& app) {
  const std::vector<OptionInfo> options = ListOptions(app);
  nlohmann::json json = {{"name", command.name},
                         {"summary", command.summary},
                         {"usage", UsageOf(command, options)},
                         {"takes_program", command.takes_program},
                         {"examples", ExampleLines(command)}};
  for (const OptionInfo& option : options) json["options"].push_back(ToJson(option));
  return json;
}

nlohmann::json ToJson(const HelpTopic& topic) {
  return {{"name", topic.name}, {"summary", topic.summary}, {"text", TopicText(topic)}};
}

const Command* FindCommand(std::string_view name) {
  const auto commands = Commands();
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command* command) { return command->name == name; });
  return found == commands.end() ? nullptr : *found;
}

int ShowAll(const CommandLine& line, bool json) {
  if (!json) {
    PrintLines(ProgramHelp(*line.app));
    return kExitOk;
  }
  nlohmann::json all;
  for (const OptionInfo& option : ListOptions(*line.app)) all["options"].push_back(ToJson(option));
  for (const Command* command : Commands())
    all["commands"].push_back(ToJson(*command, *line.Find(command->name)));
  for (const HelpTopic& topic : HelpTopics()) all["topics"].push_back(ToJson(topic));
  PrintJson(all);
  return kExitOk;
}

int RunHelp(const Context& context) {
  const std::string name = g_help_name;
  bool unused = false;
  const CommandLine line = MakeCommandLine(unused);
  if (name.empty()) return ShowAll(line, context.json);
  if (const Command* command = FindCommand(name)) {
    const CLI::App& app = *line.Find(name);
    context.json ? PrintJson(ToJson(*command, app)) : PrintLines(CommandHelp(*command, app));
    return kExitOk;
  }
  if (const HelpTopic* topic = FindHelpTopic(name)) {
    context.json ? PrintJson(ToJson(*topic)) : PrintLines(TopicText(*topic));
    return kExitOk;
  }
  const std::string near = DidYouMean(name, HelpNames());
  Diagnose(fmt::format("help: there is no command or topic '{}'{}", name,
                       near.empty() ? "; `deja help` lists them" : near));
  return kExitUsage;
}

}  // namespace

extern const Command kHelpCommand;
const Command kHelpCommand = {
    "help",
    "Explain a command or a topic",
    "  deja help                  all commands and topics\n"
    "  deja help record           the same as: deja record --help\n"
    "  deja help levels           what order, digest and full keep\n"
    "  deja help --json           every command and option, for programs\n",
    false,
    AddHelpOptions,
    RunHelp,
};

}  // namespace deja::cli
