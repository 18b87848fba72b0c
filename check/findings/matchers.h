// The matchers: each looks for a few kinds of finding, and knows nothing of the others.
//
// A matcher adds nothing that the recording does not show: where it cannot know, it adds a note or
// nothing. Consequences are folded afterwards (check/findings/fold.h). Pure; one thread.
#ifndef DEJA_CHECK_FINDINGS_MATCHERS_H_
#define DEJA_CHECK_FINDINGS_MATCHERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/evidence/job.h"
#include "check/matching/finding.h"

namespace deja::check {

struct Found {
  std::vector<Finding> findings;
  std::vector<std::string> notes;
  // For each communicator: how many of its collectives, from the first on, are the same ones on all
  // members. What comes after it is not compared.
  std::vector<size_t> comparable;
};

// signature, order, missing, left-early. The first one to run.
void MatchCollectives(const Job& job, Found& found);
// pairing
void MatchTransfers(const Job& job, Found& found);
// cycle
void MatchWaits(const Job& job, Found& found);
// group
void MatchGroups(const Job& job, Found& found);
// nan-origin
void MatchNans(const Job& job, Found& found);
// replica, corrupt
void MatchResults(const Job& job, Found& found);
// order, where signatures agree and what the program calls the operands does not. After
// MatchCollectives.
void MatchNames(const Job& job, Found& found);
// replica, of parameters at steps of optimizers
void MatchWeights(const Job& job, Found& found);
// unawaited
void MatchChanges(const Job& job, Found& found);
// store
void MatchStores(const Job& job, Found& found);
// input, of what loaders read
void MatchLoaders(const Job& job, Found& found);
// straggler
void MatchStragglers(const Job& job, Found& found);
// Adds to findings whose ranks have parted what they had read differently before.
void AddBranches(const Job& job, Found& found);
// input, where ranks hang in an operation that all have entered; a note otherwise
void MatchSurroundings(const Job& job, Found& found);

}  // namespace deja::check

#endif  // DEJA_CHECK_FINDINGS_MATCHERS_H_
