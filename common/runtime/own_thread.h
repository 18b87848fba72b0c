// Threads of Deja's own, with stacks that are not where the kernel would put the program's.
#ifndef DEJA_COMMON_RUNTIME_OWN_THREAD_H_
#define DEJA_COMMON_RUNTIME_OWN_THREAD_H_

#include <pthread.h>

namespace deja {

// False while libraries are still being loaded. The C library takes a block from the program's
// allocator for each new thread. This allocator may itself be what called a hook: allocators ask
// for files and processors while they start.
bool ThreadsMayStart();

// As pthread_create.
int StartOwnThread(pthread_t* thread, void* (*routine)(void*), void* argument);

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_OWN_THREAD_H_
