// Folding: of all findings those that are causes; the others go under the one that they follow
// from.
//
// Pure; one thread.
#ifndef DEJA_CHECK_FINDINGS_FOLD_H_
#define DEJA_CHECK_FINDINGS_FOLD_H_

#include <vector>

#include "check/matching/finding.h"

namespace deja::check {

// The first cause first.
std::vector<Finding> Fold(std::vector<Finding> findings);

}  // namespace deja::check

#endif  // DEJA_CHECK_FINDINGS_FOLD_H_
