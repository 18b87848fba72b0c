// Deja's own variables in the environment of a process that the program makes take the same room in
// a recording and in a replay. Numbers of processes among them have different lengths, and the
// stack of the new process begins below its environment. (cli/own_variables.h does it for ranks.)
//
// Pure; any thread; no allocation; async-signal-safe.
#ifndef DEJA_PRELOAD_PROCESS_CHILD_PADDING_H_
#define DEJA_PRELOAD_PROCESS_CHILD_PADDING_H_

#include <cstddef>
#include <span>

namespace deja::preload {

// Bytes that own variables and LD_PRELOAD take together, terminators included.
inline constexpr size_t kChildVariableBytes = 12288;

// Replaces values of DEJA_PAD_… variables among `entries` so that the bytes are what they should
// be; their number stays. Leaves them alone where there are too few of them, or too many bytes.
void PadChildVariables(std::span<char*> entries);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_CHILD_PADDING_H_
