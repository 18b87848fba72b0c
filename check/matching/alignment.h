// Where two ranks' sequences of collectives part, and how: calls that one made more, or left out,
// or another call in the place of one.
//
// Pure; any thread. Looks at a bounded window around the first difference, so its cost does not
// grow with the recording.
#ifndef DEJA_CHECK_MATCHING_ALIGNMENT_H_
#define DEJA_CHECK_MATCHING_ALIGNMENT_H_

#include <cstddef>

#include "check/evidence/job.h"

namespace deja::check {

enum class Parting : uint8_t {
  kReplaced,  // another call in the place of `a`'s, for all that can be seen
  kExtra,     // `b` has made `count` calls more, from `b_index` on, and goes on as `a` does
  kLeftOut,   // `b` has left `count` calls of `a`'s out, from `a_index` on, and goes on as `a` does
  kSwapped,   // `b` makes `a`'s call at `a_index` later
};

struct Alignment {
  Parting parting = Parting::kReplaced;
  size_t a_index = 0;
  size_t b_index = 0;
  size_t count = 0;
};

// `first`: the first number whose signatures do not fit; both have one there.
Alignment Align(const Job& job, const CallList& a, const CallList& b, size_t first);

}  // namespace deja::check

#endif  // DEJA_CHECK_MATCHING_ALIGNMENT_H_
