// Deja's own variables in a program's environment take the same room in a recording, a replay and a
// replay in gdb: the kernel puts the environment at the top of the stack, so that the program's
// frames would lie elsewhere.
#ifndef DEJA_CLI_OWN_VARIABLES_H_
#define DEJA_CLI_OWN_VARIABLES_H_

#include <string>
#include <vector>

namespace deja::cli {

// Adds variables DEJA_PAD_… to "NAME=value" entries. `more`: further bytes to take up. Leaves the
// entries as they are where Deja's own (DEJA_… and LD_PRELOAD) do not fit. gdb/deja_gdb/session.py
// does the same.
void PadOwnVariables(std::vector<std::string>& entries, long more);

// How many bytes longer the real path of a program is than the one that it is started by: a replay
// starts it by its real path, which the kernel puts on the stack, too. 0 for scripts.
long BytesToRealPath(const std::string& program);

}  // namespace deja::cli

#endif  // DEJA_CLI_OWN_VARIABLES_H_
