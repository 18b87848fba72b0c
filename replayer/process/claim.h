// Which process is the replayed rank.
//
// The program's children inherit the environment and the preloaded library. The first process that
// comes claims the scratch folder. In a debugger, a claim whose process is gone may be taken over
// (a second `run`). Elsewhere a child that outlives the rank stays a child. Called once, before the
// program has threads.
#ifndef DEJA_REPLAYER_PROCESS_CLAIM_H_
#define DEJA_REPLAYER_PROCESS_CLAIM_H_

#include <string>

namespace deja::replayer {

// The kernel's answer: getpid may be hooked, and is served in a replay.
int OwnPid();

// True if the calling process is the rank.
bool ClaimRank(const std::string& scratch, bool is_in_debugger);
// The process that has claimed the scratch folder; 0: none.
int ClaimHolder(const std::string& scratch);
// The rank's process has another number now.
void HoldClaim(const std::string& scratch);
// The process image is about to be replaced: what comes then is not what was recorded.
void GiveUpRank(const std::string& scratch);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_CLAIM_H_
