// Which variables of an environment are Deja's own (common/env_vars.def); the program may have
// others that begin with DEJA_.
#ifndef DEJA_COMMON_OWN_VARIABLE_NAMES_H_
#define DEJA_COMMON_OWN_VARIABLE_NAMES_H_

#include <algorithm>
#include <iterator>
#include <string_view>

#include "common/env_vars.h"

namespace deja {

// `entry`: "NAME=value", or the name alone.
inline bool IsOwnVariable(std::string_view entry) {
  if (!entry.starts_with(env::kStem)) return false;
  if (entry.starts_with(env::kPadStem)) return true;
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(std::begin(env::kNames), std::end(env::kNames), name) != std::end(env::kNames);
}

// Variables that the program does not see. Deja's Python needs the order of threads before it can
// ask the environment's hooks, so programs recorded with that order see the variable.
inline bool IsHiddenVariable(std::string_view entry) {
  constexpr std::string_view kOrder = "order";
  const std::string_view prefix = env::kThreads.prefix;
  const bool orders_threads = entry.starts_with(prefix) && entry.substr(prefix.size()) == kOrder;
  return IsOwnVariable(entry) && !orders_threads;
}

}  // namespace deja

#endif  // DEJA_COMMON_OWN_VARIABLE_NAMES_H_
