// Leaving code that faults, in a handler of a fatal signal: what is read there may be damaged.
#ifndef DEJA_PRELOAD_PROCESS_FAULT_ESCAPE_H_
#define DEJA_PRELOAD_PROCESS_FAULT_ESCAPE_H_

#include <setjmp.h>

namespace deja::preload {

// Where the calling thread goes on when SIGSEGV or SIGBUS come while it tells the engine about a
// crash; null: it does not.
extern constinit thread_local sigjmp_buf* t_escape __attribute__((tls_model("initial-exec")));

// In an engine's OnCrash: calls run(context), which may fault; then it is left where it is, and the
// result is false. Async-signal-safe.
bool WithoutFault(void (*run)(void*), void* context);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_FAULT_ESCAPE_H_
