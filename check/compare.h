// Two recordings: of what should be one job twice, or of a whole run and one that was resumed.
//
// Pure functions over jobs. Ranks are compared with the rank of the same number.
#ifndef DEJA_CHECK_COMPARE_H_
#define DEJA_CHECK_COMPARE_H_

#include "check/check.h"
#include "check/evidence/job.h"

namespace deja::check {

// input: the first number that differs between the runs, and what was read differently before it.
Report CompareRuns(const Job& a, const Job& b);

// resume: the first thing with which the resumed run does not go on as the whole one did.
Report CompareResumed(const Job& whole, const Job& resumed);

}  // namespace deja::check

#endif  // DEJA_CHECK_COMPARE_H_
