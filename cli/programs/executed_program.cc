#include "cli/programs/executed_program.h"

#include <fmt/format.h>

namespace deja::cli {

std::vector<std::string> ArgumentsOf(std::string_view arguments) {
  std::vector<std::string> words;
  while (!arguments.empty()) {
    const size_t end = arguments.find('\0');
    if (end == std::string_view::npos) {
      words.push_back(std::string(arguments) + "…");
      break;
    }
    words.emplace_back(arguments.substr(0, end));
    arguments.remove_prefix(end + 1);
  }
  return words;
}

std::string QuotedWords(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" '\"\\") == std::string::npos;
    line += (line.empty() ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  return line;
}

std::string ExecutedText(std::string_view program, std::string_view arguments) {
  if (program.empty()) return {};
  return fmt::format("{} ({})", program, QuotedWords(ArgumentsOf(arguments)));
}

}  // namespace deja::cli
