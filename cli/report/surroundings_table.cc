#include "cli/report/surroundings_table.h"

#include <map>

namespace deja::cli {

std::vector<SurroundingsDifference> DifferencesOf(const check::Job& job) {
  std::map<std::string, std::map<std::string, std::vector<uint32_t>>> by_name;
  for (const check::RankSummary& rank : job.ranks)
    for (const auto& [name, value] : rank.surroundings) {
      std::vector<uint32_t>& ranks = by_name[name][value];
      if (ranks.empty() || ranks.back() != rank.rank) ranks.push_back(rank.rank);
    }
  std::vector<SurroundingsDifference> differences;
  for (const auto& [name, values] : by_name) {
    if (values.size() == 1 && values.begin()->second.size() == job.ranks.size()) continue;
    SurroundingsDifference difference{name, {}};
    std::map<uint32_t, bool> has_it;
    for (const auto& [value, ranks] : values) {
      difference.values.push_back({value, ranks});
      for (const uint32_t rank : ranks) has_it[rank] = true;
    }
    ValueOfRanks none;
    for (const check::RankSummary& rank : job.ranks)
      if (has_it.count(rank.rank) == 0) none.ranks.push_back(rank.rank);
    if (!none.ranks.empty()) difference.values.push_back(none);
    differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace deja::cli
