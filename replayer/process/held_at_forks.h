// HoldAtForks: a mutex that the forking thread holds, so that the child gets whole what it guards.
// Another thread of the parent, Deja's own included, may be about to change it.
//
// Any thread. No fork may be made with the mutex held.
#ifndef DEJA_REPLAYER_PROCESS_HELD_AT_FORKS_H_
#define DEJA_REPLAYER_PROCESS_HELD_AT_FORKS_H_

#include <mutex>

namespace deja::replayer {

// From now on at each fork() of this process, instead of the mutex that was given before. `mutex`
// stays for good. A fork goes on without it after a second.
void HoldAtForks(std::mutex& mutex);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_HELD_AT_FORKS_H_
