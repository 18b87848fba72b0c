#include "check/evidence/seen.h"

#include <map>

namespace deja::check {

std::set<std::string> UsedGenerators(const std::vector<GeneratorSeen>& generators) {
  std::map<std::string, uint64_t> first;
  std::set<std::string> used;
  for (const GeneratorSeen& one : generators)
    if (first.try_emplace(one.name, one.digest).first->second != one.digest) used.insert(one.name);
  return used;
}

}  // namespace deja::check
