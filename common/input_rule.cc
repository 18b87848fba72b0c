#include "common/input_rule.h"

#include <algorithm>
#include <iterator>

namespace deja {
namespace {

constexpr std::string_view kBuiltIn[] = {
    "/usr/*",
    "/lib/*",
    "/lib32/*",
    "/lib64/*",
    "/libx32/*",
    "/bin/*",
    "/sbin/*",
    "/etc/*",
    "/opt/*",
    "/nix/store/*",
    "/snap/*",
    "/proc/*",
    "/sys/*",
    "/dev/*",
    "/run/*",
    "/boot/*",
    "*/site-packages/*",
    "*/dist-packages/*",
    "*/__pycache__/*",
    "*.so",
    "*.so.*",
    "*.py",
    "*.pyc",
    "*/pyvenv.cfg",
    "*/lib/python?.*",
};

bool PathMatchesAny(std::string_view path, std::string_view patterns) {
  while (!patterns.empty()) {
    const size_t end = std::min(patterns.find('\n'), patterns.size());
    const std::string_view one = patterns.substr(0, end);
    if (!one.empty() && MatchesPathPattern(path, one)) return true;
    patterns.remove_prefix(std::min(end + 1, patterns.size()));
  }
  return false;
}

}  // namespace

bool MatchesPathPattern(std::string_view text, std::string_view pattern) {
  size_t at = 0;
  size_t in = 0;
  size_t star = std::string_view::npos;  // the last one, and what it has to match at least
  size_t resume = 0;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      resume = at;
    } else if (in < pattern.size() && (pattern[in] == '?' || pattern[in] == text[at])) {
      ++in;
      ++at;
    } else if (star != std::string_view::npos) {
      in = star + 1;
      if (in == pattern.size()) return true;
      at = ++resume;
      // Each open of a program comes here: on to the next place at which the rest may begin.
      if (pattern[in] == '*' || pattern[in] == '?') continue;
      at = resume = text.find(pattern[in], resume);
      if (at == std::string_view::npos) return false;
    } else {
      return false;
    }
  }
  while (in < pattern.size() && pattern[in] == '*') ++in;
  return in == pattern.size();
}

std::span<const std::string_view> InputRule::BuiltIn() {
  return kBuiltIn;
}

bool InputRule::IsInput(std::string_view path) const {
  if (path.empty() || path.front() != '/') return false;
  if (PathMatchesAny(path, exclude_)) return false;
  if (PathMatchesAny(path, include_)) return true;
  return std::none_of(std::begin(kBuiltIn), std::end(kBuiltIn), [path](std::string_view pattern) {
    return MatchesPathPattern(path, pattern);
  });
}

}  // namespace deja
