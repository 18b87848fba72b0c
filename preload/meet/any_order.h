// What a thread does in any order: nothing that another one computes with depends on it.
//
// Python's side says so (preload/hooks/python/python_api.h). Each thread has its own; a forked
// child has that of the thread that forked it.
#ifndef DEJA_PRELOAD_MEET_ANY_ORDER_H_
#define DEJA_PRELOAD_MEET_ANY_ORDER_H_

namespace deja::preload {

// True: the calling thread's reads and writes of pipes and its locks are neither recorded nor
// waited for.
inline constinit thread_local bool t_in_any_order = false;

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_ANY_ORDER_H_
