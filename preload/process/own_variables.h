// Deja's own part of a process's environment: the variables of common/env_vars.def, and this
// library in LD_PRELOAD. They are kept here when the process begins; what the program sees of its
// environment afterwards is its own. process_name.h adds them to the environment of what it execs.
//
// KeepOwnVariables and HideOwnVariables: once each, the second from a constructor of the library.
// The rest may be called by any thread at any time. Nothing here allocates.
#ifndef DEJA_PRELOAD_PROCESS_OWN_VARIABLES_H_
#define DEJA_PRELOAD_PROCESS_OWN_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/env_vars.h"

namespace deja::preload {

// Copies them from `environ`, but for `left_out` (whole names with their =).
void KeepOwnVariables(std::string_view left_out);
// One more; `entry` lives for good. Left out if there are too many.
void AddOwnVariable(const char* entry);
std::span<const char* const> OwnVariables();
// Path of this library, as LD_PRELOAD has it; empty before KeepOwnVariables, and where nothing was
// kept.
std::string_view OwnLibrary();

// A list as LD_PRELOAD's value without this library, written to `out`, which has room for `list`
// and a terminator and may be where `list` is. Its size.
size_t WithoutOwnLibrary(std::string_view list, std::span<char> out);

// Takes what is kept out of what the program sees.
void HideOwnVariables();
bool OwnVariablesAreHidden();

// The value of a variable of Deja's, hidden or not; null: it is not set.
const char* OwnVariable(const env::Variable& variable);
// The same of a name that Deja's Python asks for.
const char* OwnVariableNamed(const char* name);
// 0: it is not set.
uint64_t OwnNumber(const env::Number& variable);
bool OwnFlag(const env::Flag& variable);
// Whether it is set to `value`, one of the table's.
bool OwnVariableIs(const env::Choice& variable, std::string_view value);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_OWN_VARIABLES_H_
