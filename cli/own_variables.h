// Deja's own variables take the same room in the environment of a recording, a replay and a replay
// in gdb. The kernel puts the environment at the top of the stack, so a different size would move
// the program's frames.
#ifndef DEJA_CLI_OWN_VARIABLES_H_
#define DEJA_CLI_OWN_VARIABLES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/env_vars.h"

namespace deja::cli {

// "NAME=value" of a variable of Deja's, for the environment of a program.
std::string Entry(const env::Text& variable, std::string_view value);
std::string Entry(const env::Choice& variable, std::string_view value);
std::string Entry(const env::Number& variable, uint64_t value);
std::string Entry(const env::Flag& variable);  // true

// Its name and value.
using NamedValue = std::pair<std::string, std::string>;
NamedValue Named(const env::Text& variable, std::string value);
NamedValue Named(const env::Choice& variable, std::string value);
NamedValue Named(const env::Number& variable, uint64_t value);
NamedValue Named(const env::Flag& variable, bool value);
NamedValue Named(const env::Names& variable, const std::vector<std::string>& values);
NamedValue Named(const env::Lines& variable, const std::vector<std::string>& values);

// Adds variables DEJA_PAD_… to "NAME=value" entries. `more`: further bytes to take up. Leaves the
// entries as they are where Deja's own (DEJA_… and LD_PRELOAD) do not fit. gdb/deja_gdb/session.py
// does the same.
void PadOwnVariables(std::vector<std::string>& entries, long more);

// By how many bytes the real path of a program is longer than the path that it is started by; 0 for
// scripts. A replay starts it by its real path, which the kernel puts on the stack, too.
long BytesToRealPath(const std::string& program);

}  // namespace deja::cli

#endif  // DEJA_CLI_OWN_VARIABLES_H_
