#include "cli/help/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cli/help/option_list.h"
#include "cli/help/wrapped_text.h"

namespace deja::cli {
namespace {

// What all three scripts are made of.
struct Completed {
  const Command* command = nullptr;
  std::vector<OptionInfo> options;
};

std::vector<Completed> AllCompleted(const CommandLine& line) {
  std::vector<Completed> all;
  for (const Command* command : Commands())
    all.push_back({command, ListOptions(*line.Find(command->name))});
  return all;
}

std::string Replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  for (const char c : text)
    if (what.find(c) != std::string_view::npos)
      out.append(with);
    else
      out.push_back(c);
  return out;
}

// A text between single quotes, for any of the shells.
std::string Quoted(std::string_view text) {
  return "'" + Replaced(text, "'", "'\\''") + "'";
}

// The first part of a description: what fits into a list beside a name.
std::string Brief(std::string_view text) {
  constexpr size_t kMost = 70;
  for (const std::string_view end : {"; ", " (", ". "}) text = text.substr(0, text.find(end));
  const std::vector<std::string> lines = WrappedLines(text, kMost);
  if (lines.empty()) return "";
  return lines.size() == 1 ? lines.front() : lines.front() + " …";
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// ---- bash

constexpr const char* kBashHead =
    R"(# Completion of deja for bash, written by `deja completion bash`.
_deja_words() {
  local IFS=$' \t\n'
  COMPREPLY=($(compgen -W "$1" -- "$2"))
}
_deja_files() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}
# The words of the program after `--`, the first of which is word $1.
_deja_program() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
  else
    _deja_files "${COMP_WORDS[COMP_CWORD]}"
  fi
}
_deja() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
  COMPREPLY=()
  for ((i = 2; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      _deja_program $((i + 1))
      return
    fi
  done
  # An option and its value with = between them are three words.
  if [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $word == = ]]; then
    word=
  fi
)";

constexpr const char* kBashTail = R"(}
complete -F _deja deja
)";

// "  record:--level) _deja_words 'order digest full' "$word" ;;": what follows an option, or stands
// where a positional argument is.
std::string BashValue(const OptionInfo& option) {
  if (!option.choices.empty())
    return fmt::format("_deja_words {} \"$word\"", Quoted(Joined(option.choices)));
  return option.is_path || option.positional ? "_deja_files \"$word\"" : ":";
}

std::string BashCases(const Completed& one) {
  std::string cases;
  for (const OptionInfo& option : one.options) {
    if (option.positional || option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names)
      patterns.push_back(fmt::format("{}:{}", one.command->name, name));
    cases += fmt::format("    {})\n      {}\n      return\n      ;;\n", fmt::join(patterns, " | "),
                         BashValue(option));
  }
  return cases;
}

std::string BashPositional(const Completed& one) {
  for (const OptionInfo& option : one.options)
    if (option.positional)
      return fmt::format("    {}) {} ;;\n", one.command->name, BashValue(option));
  return {};
}

std::string Bash(const std::vector<Completed>& all, const CommandLine& line) {
  std::string script = kBashHead;
  script += "  case $COMP_CWORD:$word in\n";
  script += fmt::format("    1:-*)\n      _deja_words {} \"$word\"\n      return\n      ;;\n",
                        Quoted(Joined(OptionNames(ListOptions(*line.app)))));
  script +=
      fmt::format("    1:*)\n      _deja_words {} \"$word\"\n      return\n      ;;\n  esac\n",
                  Quoted(Joined(CommandNames())));
  script += "  case $command:$before in\n";
  for (const Completed& one : all) script += BashCases(one);
  script += "  esac\n  case $command:$word in\n";
  for (const Completed& one : all)
    script += fmt::format("    {}:-*)\n      _deja_words {} \"$word\"\n      return\n      ;;\n",
                          one.command->name, Quoted(Joined(OptionNames(one.options))));
  script += "  esac\n  case $command in\n";
  for (const Completed& one : all) script += BashPositional(one);
  return script + "  esac\n" + kBashTail;
}

// ---- zsh

// Inside the brackets and between the colons of _arguments.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string ZshValue(const OptionInfo& option) {
  const std::string name = ZshText(option.positional ? option.names.front() : option.value);
  if (!option.choices.empty())
    return fmt::format(":{}:({})", option.positional ? name : "value", Joined(option.choices));
  return option.is_path || option.positional ? fmt::format(":{}:_files", name)
                                             : fmt::format(":{}: ", name);
}

// "'(-o --out)'{-o,--out}'[text]:PATH:_files'"
std::string ZshOption(const OptionInfo& option) {
  const std::string text = fmt::format("[{}]{}", ZshText(Brief(option.text)),
                                       option.value.empty() ? "" : ZshValue(option));
  if (option.repeats || option.names.size() == 1) {
    std::string specs;
    for (const std::string& name : option.names)
      specs += (specs.empty() ? "" : " ") +
               Quoted(fmt::format("{}{}{}", option.repeats ? "*" : "", name, text));
    return specs;
  }
  return fmt::format("'({})'{{{}}}{}", Joined(option.names), fmt::join(option.names, ","),
                     Quoted(text));
}

std::string ZshArguments(const Completed& one) {
  std::string words = "_arguments -S";
  int position = 0;
  for (const OptionInfo& option : one.options) {
    const std::string spec =
        option.positional
            ? Quoted((option.repeats ? "*" : std::to_string(++position)) + ZshValue(option))
            : ZshOption(option);
    words += " \\\n        " + spec;
  }
  if (one.command->takes_program) words += " \\\n        '*:::program:_normal'";
  return words;
}

std::string Zsh(const std::vector<Completed>& all, const CommandLine& line) {
  std::string script =
      "#compdef deja\n# Completion of deja for zsh, written by `deja completion zsh`.\n"
      "_deja() {\n  local -a commands options\n  commands=(\n";
  for (const Completed& one : all)
    script += fmt::format("    {}\n", Quoted(fmt::format("{}:{}", one.command->name,
                                                         ZshText(Brief(one.command->summary)))));
  script += "  )\n  options=(\n";
  for (const OptionInfo& option : ListOptions(*line.app))
    for (const std::string& name : option.names)
      script += fmt::format("    {}\n", Quoted(fmt::format("{}:{}", name, ZshText(option.text))));
  script +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe -t commands command commands -- options\n"
      "    return\n  fi\n  local command=$words[2]\n  shift words\n  ((CURRENT--))\n"
      "  case $command in\n";
  for (const Completed& one : all)
    script += fmt::format("    {})\n      {}\n      ;;\n", one.command->name, ZshArguments(one));
  return script +
         "  esac\n}\nif [[ $funcstack[1] == _deja ]]; then\n  _deja \"$@\"\nelse\n  compdef _deja "
         "deja\nfi\n";
}

// ---- fish

constexpr const char* kFishHead =
    R"(# Completion of deja for fish, written by `deja completion fish`.
function __deja_has_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = $argv[1]; and not contains -- -- $words
end
function __deja_has_none
    test (count (commandline -opc)) -eq 1
end
complete -c deja -f
)";

// A text between single quotes, as fish has it.
std::string FishQuoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return "'" + out + "'";
}

std::string FishOption(const std::string& condition, const OptionInfo& option) {
  std::string row = fmt::format("complete -c deja -n '{}'", condition);
  for (const std::string& name : option.names)
    row += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.choices.empty())
    row += fmt::format(" -x -a '{}'", Joined(option.choices));
  else if (option.is_path)
    row += " -r -F";
  else if (!option.value.empty())
    row += " -x";
  return row + fmt::format(" -d {}\n", FishQuoted(Brief(option.text)));
}

std::string Fish(const std::vector<Completed>& all, const CommandLine& line) {
  std::string script = kFishHead;
  for (const OptionInfo& option : ListOptions(*line.app))
    script += FishOption("__deja_has_none", option);
  for (const Completed& one : all)
    script += fmt::format("complete -c deja -n __deja_has_none -a {} -d {}\n", one.command->name,
                          FishQuoted(Brief(one.command->summary)));
  for (const Completed& one : all) {
    const std::string condition = fmt::format("__deja_has_command {}", one.command->name);
    for (const OptionInfo& option : one.options) {
      if (!option.positional)
        script += FishOption(condition, option);
      else if (option.choices.empty())
        script += fmt::format("complete -c deja -n '{}' -F\n", condition);
      else
        script +=
            fmt::format("complete -c deja -n '{}' -a '{}'\n", condition, Joined(option.choices));
    }
  }
  return script + "complete -c deja -n 'contains -- -- (commandline -opc)' -F\n";
}

}  // namespace

const std::vector<std::string>& CompletedShells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string CompletionScript(const std::string& shell, const CommandLine& line) {
  const std::vector<Completed> all = AllCompleted(line);
  if (shell == "zsh") return Zsh(all, line);
  return shell == "fish" ? Fish(all, line) : Bash(all, line);
}

}  // namespace deja::cli
