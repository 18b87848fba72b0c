#include "cli/help/nearest_name.h"

#include <algorithm>

namespace deja::cli {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Rows of the table of distances between prefixes: this one, and the two before.
  std::vector<size_t> before_last;
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t exchanged = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, exchanged});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string NearestName(std::string_view name, const std::vector<std::string>& names) {
  constexpr size_t kLettersAMistake = 3;
  constexpr size_t kLeastPrefix = 2;
  std::string nearest;
  size_t least = std::max<size_t>(1, name.size() / kLettersAMistake) + 1;
  for (const std::string& one : names) {
    const size_t distance = EditDistance(name, one);
    if (distance >= least) continue;
    least = distance;
    nearest = one;
  }
  if (!nearest.empty() || name.size() < kLeastPrefix) return nearest;
  const auto begins = [&](const std::string& one) { return one.starts_with(name); };
  const auto first = std::find_if(names.begin(), names.end(), begins);
  if (first == names.end() || std::any_of(first + 1, names.end(), begins)) return {};
  return *first;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? nearest : "; did you mean '" + nearest + "'?";
}

}  // namespace deja::cli
