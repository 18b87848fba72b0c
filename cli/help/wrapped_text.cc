#include "cli/help/wrapped_text.h"

#include <algorithm>

namespace deja::cli {

size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::vector<std::string> WrappedLines(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, std::min(text.find_first_of(" \n"), text.size()));
    text.remove_prefix(word.size());
    if (word.empty()) break;
    if (!line.empty() && Columns(line) + 1 + Columns(word) > width) {
      lines.push_back(line);
      line.clear();
    }
    line.append(line.empty() ? "" : " ").append(word);
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string ListEntry(std::string_view name, std::string_view text, size_t column) {
  std::string entry = "  " + std::string(name);
  const std::string indent(column, ' ');
  const bool fits = Columns(entry) + 2 <= column;
  bool first = fits;
  if (fits) entry.append(column - Columns(entry), ' ');
  for (const std::string& line : WrappedLines(text, kHelpColumns - column)) {
    if (!first) entry += "\n" + indent;
    entry += line;
    first = false;
  }
  entry.erase(entry.find_last_not_of(' ') + 1);
  return entry + "\n";
}

}  // namespace deja::cli
