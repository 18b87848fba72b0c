// Which variables of an environment are Deja's own (common/env_vars.def); the program may have
// others that begin with DEJA_.
#ifndef DEJA_COMMON_OWN_VARIABLE_NAMES_H_
#define DEJA_COMMON_OWN_VARIABLE_NAMES_H_

#include <algorithm>
#include <iterator>
#include <string_view>

namespace deja {

// `entry`: "NAME=value", or the name alone.
inline bool IsOwnVariable(std::string_view entry) {
  static constexpr std::string_view kNames[] = {
#define DEJA_ENV(name, meaning) #name,
#include "common/env_vars.def"
#undef DEJA_ENV
  };
  constexpr std::string_view kPads = "DEJA_PAD_";
  if (!entry.starts_with("DEJA_")) return false;
  if (entry.starts_with(kPads)) return true;
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Variables that the program does not see. Deja's Python needs the order of threads before it can
// ask the environment's hooks, so programs recorded with that order see the variable.
inline bool IsHiddenVariable(std::string_view entry) {
  return IsOwnVariable(entry) && entry != "DEJA_THREADS=order";
}

}  // namespace deja

#endif  // DEJA_COMMON_OWN_VARIABLE_NAMES_H_
