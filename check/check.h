// The reduce: what the summaries of a job's ranks, put together, show.
//
// Pure; one thread. Linear in the number of operations.
#ifndef DEJA_CHECK_CHECK_H_
#define DEJA_CHECK_CHECK_H_

#include <string>
#include <vector>

#include "check/evidence/job.h"
#include "check/matching/finding.h"

namespace deja::check {

struct Report {
  std::vector<Finding> findings;   // the first cause first
  std::vector<std::string> notes;  // what differs and explains nothing, and what cannot be known
  bool is_damaged = false;         // events of some ranks are missing
};

Report Check(const Job& job);

}  // namespace deja::check

#endif  // DEJA_CHECK_CHECK_H_
