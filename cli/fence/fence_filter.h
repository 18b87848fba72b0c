// The system calls that a replayed program may make: a seccomp filter for what Landlock does not
// know.
//
// Refused at once is what changes the machine, or reaches outside, whatever its arguments are.
// What depends on the file, process or address that is meant is asked of the holder of the filter's
// listener (cli/fence/fence_answers.h). What the filter's author has never heard of is not there,
// as on an older kernel.
#ifndef DEJA_CLI_FENCE_FENCE_FILTER_H_
#define DEJA_CLI_FENCE_FENCE_FILTER_H_

#include <linux/filter.h>

#include <vector>

namespace deja::cli {

struct FilterRules {
  bool allow_writes = false;
  bool allow_network = false;
  // No process holds the listener: what would be asked is allowed.
  bool unanswered = false;
  int landlock_abi = 0;  // what it does not do there is done here, as far as that goes
};

std::vector<sock_filter> MakeFenceFilter(const FilterRules& rules);

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_FENCE_FILTER_H_
