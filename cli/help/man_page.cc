#include "cli/help/man_page.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "cli/help/help_text.h"
#include "cli/help/help_topics.h"
#include "cli/help/option_list.h"
#include "cli/version.h"

namespace deja::cli {
namespace {

// The code point that begins at text[i], which moves past it.
uint32_t NextCodePoint(std::string_view text, size_t& i) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(i++);
  if (first < 0x80) return first;
  uint32_t code = first < 0xe0 ? first & 0x1f : first < 0xf0 ? first & 0x0f : first & 0x07;
  while (i < text.size() && (byte(i) & 0xc0) == 0x80) code = code << 6 | (byte(i++) & 0x3f);
  return code;
}

// Text as groff prints it: a dash is the one that is typed, and no line is a request.
std::string Roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (size_t i = 0; i < text.size();) {
    const uint32_t code = NextCodePoint(text, i);
    if (line_begins && (code == '.' || code == '\'')) out += "\\&";
    line_begins = code == '\n';
    switch (code) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += code < 0x80 ? std::string(1, static_cast<char>(code))
                           : fmt::format("\\[u{:04X}]", code);
    }
  }
  return out;
}

std::string Head(const std::string& name) {
  std::string upper = name;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return fmt::format(".TH {} 1 \"\" \"deja {}\" \"Deja\"\n", Roff(upper), kVersion);
}

std::string Section(std::string_view title) {
  return fmt::format(".SH {}\n", Roff(title));
}

// A row of a list: what it is about in bold, and its text.
std::string Row(std::string_view name, std::string_view text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(name), Roff(text));
}

// "-o, --out PATH" with what stands for a value in italics.
std::string OptionRow(const OptionInfo& option) {
  std::string head;
  for (const std::string& name : option.names)
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", Roff(name));
  if (!option.positional && !option.value.empty())
    head += fmt::format(" \\fI{}\\fR", Roff(option.value));
  return fmt::format(".TP\n{}\n{}\n", head, Roff(option.text));
}

std::string OptionSections(const std::vector<OptionInfo>& options) {
  std::string page;
  const std::vector<std::string> groups = ListGroups(options);
  if (!groups.empty()) page += Section("OPTIONS");
  for (const std::string& group : groups) {
    if (groups.size() > 1) page += fmt::format(".SS {}\n", Roff(group));
    for (const OptionInfo& option : options)
      if (!option.positional && option.group == group) page += OptionRow(option);
  }
  return page;
}

std::string ExitStatus() {
  std::string page = Section("EXIT STATUS");
  for (const HelpItem& item : FindHelpTopic("exit-codes")->items)
    page += *item.name == 0 ? fmt::format(".PP\n{}\n", Roff(item.text)) : Row(item.name, item.text);
  return page;
}

std::string TopicSection(const HelpTopic& topic) {
  std::string page = fmt::format(".SS {}\n{}.\n", Roff(topic.name), Roff(topic.summary));
  for (const HelpItem& item : topic.items)
    page += *item.name == 0 ? fmt::format(".PP\n{}\n", Roff(item.text)) : Row(item.name, item.text);
  return page;
}

}  // namespace

std::string ManPageFile(const Command* command) {
  return command == nullptr ? "deja.1" : fmt::format("deja-{}.1", command->name);
}

std::string CommandManPage(const Command& command, const CLI::App& app) {
  const std::vector<OptionInfo> options = ListOptions(app);
  const std::string name = fmt::format("deja-{}", command.name);
  std::string page = Head(name) + Section("NAME");
  page += fmt::format("{} \\- {}\n", Roff(name), Roff(command.summary));
  page += Section("SYNOPSIS") + fmt::format(".B {}\n", Roff(UsageOf(command, options)));
  std::string arguments;
  for (const OptionInfo& option : options)
    if (option.positional) arguments += OptionRow(option);
  if (!arguments.empty()) page += Section("ARGUMENTS") + arguments;
  page += OptionSections(options) + Section("EXAMPLES") + ".nf\n";
  for (const std::string& line : ExampleLines(command)) page += Roff(line) + "\n";
  page += ".fi\n" + ExitStatus();
  return page + Section("SEE ALSO") + ".BR deja (1)\n";
}

std::string ProgramManPage(const CLI::App& app) {
  std::string page = Head("deja") + Section("NAME");
  page += "deja \\- checkpoint\\-and\\-replay debugger for distributed GPU training\n";
  page += Section("SYNOPSIS") + Roff("deja COMMAND [OPTION]... [-- PROGRAM [ARGUMENT]...]") + "\n";
  page += Section("DESCRIPTION") + Roff(kDescription) + "\n";
  page += Section("COMMANDS");
  for (const CommandGroup& group : CommandGroups()) {
    page += fmt::format(".SS {}\n", Roff(group.title));
    for (const Command* command : group.commands) page += Row(command->name, command->summary);
  }
  page += OptionSections(ListOptions(app)) + ExitStatus();
  page += Section("TOPICS");
  for (const HelpTopic& topic : HelpTopics())
    if (std::string_view(topic.name) != "exit-codes") page += TopicSection(topic);
  page += Section("SEE ALSO");
  const auto commands = Commands();
  for (size_t i = 0; i < commands.size(); ++i)
    page += fmt::format(".BR {} (1){}\n", Roff(fmt::format("deja-{}", commands[i]->name)),
                        i + 1 == commands.size() ? "" : ",");
  return page;
}

}  // namespace deja::cli
