// Where a rank stands when its recording ends, in words, and whether it waited.
//
// Pure functions over a job.
#ifndef DEJA_CHECK_MATCHING_STANDING_H_
#define DEJA_CHECK_MATCHING_STANDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/evidence/job.h"
#include "check/matching/finding.h"

namespace deja::check {

// It entered `call` and did not come out of it, or came out with an error.
bool WaitsIn(const Call& call);

// The rank is in some operation at its end, or had one that failed.
bool HasWaited(const RankSummary& rank);

// It ended by itself and badly, and no operation had failed or was under way: it is what others
// fail for.
bool EndedOnItsOwn(const RankSummary& rank);

// What the rank did at its end: the call that it is in, or its last one, and how it ended.
Side StandingOf(const Job& job, size_t rank);

// Ranks that are in an operation when a recording ends need not hang: a user may have ended a
// healthy job. True if this one has waited much longer for it than for any operation before.
bool WaitedLong(const Job& job, const RankSummary& rank, const CommSummary& comm, const Call& call);

// "AllReduce float32[8] sum #12", with ranks, site and numbers for the commands.
Side SideOf(const Job& job, const Member& member, const Call& call);

// "show RUN --rank 2 --comm 0 --seq 10-12 --stacks"
std::string ShowCommand(const Side& side);
// "replay RUN --rank 2 --gdb"
std::string ReplayCommand(uint32_t rank);
// The same in pdb, if an exception of Python's ended the rank.
std::string ReplayCommand(const RankSummary& rank);

}  // namespace deja::check

#endif  // DEJA_CHECK_MATCHING_STANDING_H_
