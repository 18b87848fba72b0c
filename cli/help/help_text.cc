#include "cli/help/help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/help/help_topics.h"
#include "cli/help/wrapped_text.h"

namespace deja::cli {
namespace {

constexpr size_t kOptionColumn = 26;
constexpr size_t kCommandColumn = 15;

constexpr const char* kFirstCommands =
    "Start with:\n"
    "  deja record --loopback -n 4 --out run.deja -- ./train    record four ranks on this machine\n"
    "  deja record --out run.deja -- torchrun train.py          record a job with its own "
    "launcher\n"
    "  deja info run.deja                                       how each rank ended\n"
    "  deja replay run.deja --rank 2 --gdb                      run rank 2 again, alone, in gdb\n";

// Without the options that no user gives.
std::string OptionsText(const std::vector<OptionInfo>& options) {
  std::string text;
  for (const std::string& group : ListGroups(options)) {
    text += fmt::format("\n{}:\n", group);
    for (const OptionInfo& option : options)
      if (!option.positional && option.group == group)
        text += ListEntry(option.Usage(), option.text, kOptionColumn);
  }
  return text;
}

// "  deja info run.deja    what it holds": where the remark begins; npos: there is none.
size_t RemarkAt(std::string_view line) {
  const size_t gap = line.find("   ", line.find_first_not_of(' '));
  return gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
}

void AddExample(std::string_view line, std::vector<std::string>& lines) {
  const std::string_view indent =
      line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
  if (Columns(line) <= kHelpColumns) {
    lines.emplace_back(line);
    return;
  }
  const size_t remark = RemarkAt(line);
  if (remark == std::string_view::npos) {
    for (const std::string& one : WrappedLines(line, kHelpColumns - indent.size()))
      lines.push_back(std::string(indent) + one);
    return;
  }
  const std::string_view command = line.substr(0, line.find_last_not_of(' ', remark - 1) + 1);
  lines.emplace_back(command);
  lines.push_back(std::string(indent) + "    " + std::string(line.substr(remark)));
}

}  // namespace

std::string UsageOf(const Command& command, const std::vector<OptionInfo>& options) {
  std::string usage = fmt::format("deja {} [OPTION]...", command.name);
  for (const OptionInfo& option : options) {
    if (!option.positional) continue;
    usage += option.required ? " " + option.names.front() : " [" + option.names.front() + "]";
    if (option.repeats) usage += "...";
  }
  if (command.takes_program) usage += " [-- PROGRAM [ARGUMENT]...]";
  return usage;
}

std::vector<std::string> ExampleLines(const Command& command) {
  std::vector<std::string> lines;
  std::string_view text = command.examples;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    AddExample(text.substr(0, end), lines);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string CommandHelp(const Command& command, const CLI::App& app) {
  const std::vector<OptionInfo> options = ListOptions(app);
  std::string text;
  for (const std::string& line : WrappedLines(command.summary, kHelpColumns)) text += line + "\n";
  text += "Usage: " + UsageOf(command, options) + "\n";
  bool first = true;
  for (const OptionInfo& option : options) {
    if (!option.positional) continue;
    if (first) text += "\nArguments:\n";
    first = false;
    text += ListEntry(option.names.front(), option.text, kOptionColumn);
  }
  text += OptionsText(options) + "\nExamples:\n";
  for (const std::string& line : ExampleLines(command)) text += line + "\n";
  return text;
}

std::string ProgramHelp(const CLI::App& app) {
  std::string text;
  for (const std::string& line : WrappedLines(kDescription, kHelpColumns)) text += line + "\n";
  text += "Usage: deja COMMAND [OPTION]... [-- PROGRAM [ARGUMENT]...]\n";
  for (const CommandGroup& group : CommandGroups()) {
    text += fmt::format("\n{}:\n", group.title);
    for (const Command* command : group.commands)
      text += ListEntry(command->name, command->summary, kCommandColumn);
  }
  text += "\nTopics (deja help TOPIC):\n";
  for (const HelpTopic& topic : HelpTopics())
    text += ListEntry(topic.name, topic.summary, kCommandColumn);
  text += OptionsText(ListOptions(app));
  return text + fmt::format("\n{}\nExit status: {}\n", kFirstCommands, kExitStatusLine);
}

}  // namespace deja::cli
