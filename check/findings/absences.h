// missing and left-early: ranks that did not come to a collective that the others entered.
//
// Pure.
#ifndef DEJA_CHECK_FINDINGS_ABSENCES_H_
#define DEJA_CHECK_FINDINGS_ABSENCES_H_

#include "check/findings/matchers.h"
#include "check/matching/comm_view.h"

namespace deja::check {

// Of a communicator whose ranks called the same, as far as each has come.
void MatchAbsences(const CommView& view, Found& found);

}  // namespace deja::check

#endif  // DEJA_CHECK_FINDINGS_ABSENCES_H_
