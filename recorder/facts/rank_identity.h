// Which rank of the job this process is: what the launcher's variables say, else what the program
// says when it makes its first communicator. Reads the environment only; any thread.
#ifndef DEJA_RECORDER_FACTS_RANK_IDENTITY_H_
#define DEJA_RECORDER_FACTS_RANK_IDENTITY_H_

#include <cstdint>

namespace deja::recorder {

struct RankIdentity {
  uint32_t rank = 0;
  uint32_t world_size = 0;
  uint32_t local_rank = 0;
};

// `rank` and `nranks`: of this process in the communicator that makes it a rank.
RankIdentity FindRankIdentity(int rank, int nranks);
// True if a launcher's variables say which rank this is.
bool HasLauncherRank();

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FACTS_RANK_IDENTITY_H_
