// The child of the rank that a replay is about (deja replay --child). Only this child prints. In
// gdb it waits where it begins until gdb is attached to it.
//
// Thread that opens the child's session, within the guard.
#ifndef DEJA_REPLAYER_FORKS_CHOSEN_CHILD_H_
#define DEJA_REPLAYER_FORKS_CHOSEN_CHILD_H_

#include <string>
#include <string_view>

namespace deja::replayer {

// A child of this replay is chosen.
bool IsChildChosen();
// It is the process `name`.
bool IsChosenChild(std::string_view name);

// In the chosen child: where it has the outputs that the rank was started with, it gets those that
// are shown. `scratch`: the replay's scratch folder.
void TakeShownOutputs(const std::string& scratch);
// The process `name` waits where it begins for a debugger that attaches itself. That is the chosen
// child; where none is chosen, the rank (empty) of `deja replay --wait`.
bool AwaitsDebugger(std::string_view name);
// In such a process: returns when a debugger is attached; at once where none is to come.
void AwaitDebugger(const std::string& scratch);

// gdb has a process of this replay: how long others wait for it is not known.
bool IsInDebugger();

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_CHOSEN_CHILD_H_
