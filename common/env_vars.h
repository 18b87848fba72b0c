// The DEJA_* variables of common/env_vars.def as typed constants: env::kOut, env::kLevel.
//
// Constants only; for any code. own_variable_names.h says which entries of an environment are
// Deja's. The values are read by preload/process/own_variables.h and written by
// cli/own_variables.h.
#ifndef DEJA_COMMON_ENV_VARS_H_
#define DEJA_COMMON_ENV_VARS_H_

#include <string_view>

namespace deja::env {

struct Variable {
  const char* name;    // "DEJA_OUT"
  const char* prefix;  // "DEJA_OUT=", as an environment's entry begins
};

// One type for each type of value, so that a number is not read as a text.
struct Text : Variable {};
struct Number : Variable {};  // decimal, unsigned; not set: 0
struct Flag : Variable {};    // "1"; not set, empty or "0": false
struct Choice : Variable {};  // one of the words of the table
struct Names : Variable {};   // separated by commas
struct Lines : Variable {};   // separated by newlines

#define DEJA_ENV(constant, name, type, values, meaning) \
  inline constexpr type constant{{#name, #name "="}};
#include "common/env_vars.def"
#undef DEJA_ENV

inline constexpr std::string_view kNames[] = {
#define DEJA_ENV(constant, name, type, values, meaning) #name,
#include "common/env_vars.def"
#undef DEJA_ENV
};

// What all names begin with; a program may have others that do.
inline constexpr std::string_view kStem = "DEJA_";
// What the names of the padding begin with.
inline constexpr std::string_view kPadStem = "DEJA_PAD_";
static_assert(std::string_view(kFirstPad.name).starts_with(kPadStem));

}  // namespace deja::env

#endif  // DEJA_COMMON_ENV_VARS_H_
