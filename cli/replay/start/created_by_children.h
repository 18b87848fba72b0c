// The names that children of a rank made in the recorded run. The rank looked for some of them
// before, and nothing in its own recording says who made them.
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_START_CREATED_BY_CHILDREN_H_
#define DEJA_CLI_REPLAY_START_CREATED_BY_CHILDREN_H_

#include <string>
#include <vector>

#include "format/scratch/created_names.h"

namespace deja::cli {

// Each name once, as it was first made. `folders`: of the children's recordings. A child that
// cannot be read is left out: the replay says so. A rank that was forked is a child of the process
// that the replay begins with.
std::vector<format::CreatedName> NamesCreatedBy(const std::vector<std::string>& folders);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_CREATED_BY_CHILDREN_H_
