// Companions: other ranks that the parent of a forked rank has forked before it, or that the rank
// itself has started.
//
// A launcher may wait for what one rank says before it forks the next one, or for the end of one.
// So its replay makes that one, too, from its own recording: a companion. It sleeps until its
// parent hangs, and most never do more than that. It prints nothing, reports nothing, and is killed
// once the rank is there, or has ended.
//
// Main thread of a process that begins, within the guard.
#ifndef DEJA_REPLAYER_FORKS_COMPANIONS_H_
#define DEJA_REPLAYER_FORKS_COMPANIONS_H_

#include <sys/types.h>

#include <string>
#include <string_view>

namespace deja::replayer {

// Where the recording of the rank or rank's child `name` is that is not of the replayed rank;
// empty: the replay does not know.
std::string FindCompanionFolder(const std::string& scratch, std::string_view name);
// gdb, which follows forks to the rank, would follow them to a companion.
bool MayMakeCompanions();

// In a companion: ends with its parent.
void EndWithParent(pid_t parent);
// In a companion: returns when its parent hangs.
void AwaitStandingParent(pid_t parent);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_COMPANIONS_H_
