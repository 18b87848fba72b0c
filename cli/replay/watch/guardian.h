// Guardian: no program of a replay outlives the command, however that is ended.
//
// There are three processes:
// - the one that the user has started waits and passes signals on
// - the guardian, in a process group of its own, becomes the parent of orphaned processes
// - the worker, its child, replays
//
// If any of them is killed, or the user's whole process group, the others clean up. They end what
// the worker had started, with children of children, and remove the temporary folders.
//
// Main thread, before there are others.
#ifndef DEJA_CLI_REPLAY_WATCH_GUARDIAN_H_
#define DEJA_CLI_REPLAY_WATCH_GUARDIAN_H_

namespace deja::cli {

// Returns in the worker. The other two end as the worker does. Where no process can be made, it
// returns in this one.
void ContinueGuarded();

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_GUARDIAN_H_
