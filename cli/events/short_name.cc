#include "cli/events/short_name.h"

#include <cctype>

namespace deja::cli {
namespace {

constexpr size_t kLongArguments = 24;
constexpr std::string_view kOperator = "operator";

bool IsOfAName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool EndsWithOperator(std::string_view text) {
  return text.ends_with(kOperator) &&
         (text.size() == kOperator.size() || !IsOfAName(text[text.size() - kOperator.size() - 1]));
}

// After the bracket that closes the one at `at`, of whatever kind; npos: none does.
size_t BehindBracket(std::string_view name, size_t at) {
  int depth = 0;
  for (size_t i = at; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']' || (c == '>' && name[i - 1] != '-')) --depth;
    if (depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string ShortName(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const char c = name[i];
    const bool opens = c == '<' || c == '(' || c == '{' || c == '[';
    if (!opens || EndsWithOperator(name.substr(0, i))) {
      // What stands in front of a space is what the function returns.
      if (c == ' ' && !EndsWithOperator(name.substr(0, i)))
        out.clear();
      else
        out += c;
      ++i;
      continue;
    }
    const size_t end = BehindBracket(name, i);
    if (end == std::string_view::npos) return std::string(name);
    const std::string_view inside = name.substr(i, end - i);
    out += c == '<' && inside.size() > kLongArguments + 2 ? std::string_view("<…>") : inside;
    i = end;
  }
  return out.empty() ? std::string(name) : out;
}

}  // namespace deja::cli
