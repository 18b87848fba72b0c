// The processes that a thread has made, and those that it got as a subreaper, which run or wait to
// be reaped. Empty where /proc does not tell. Any thread.
#ifndef DEJA_CLI_CHILD_PROCESSES_H_
#define DEJA_CLI_CHILD_PROCESSES_H_

#include <sys/types.h>

#include <vector>

namespace deja::cli {

std::vector<pid_t> ChildrenOf(pid_t process, pid_t thread);

}  // namespace deja::cli

#endif  // DEJA_CLI_CHILD_PROCESSES_H_
