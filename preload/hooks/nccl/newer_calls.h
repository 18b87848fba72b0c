// Calls of an NCCL that is newer than Deja's table: seen by name, passed on, noted as not recorded.
//
// No hook has their names, so the loader binds the program to the library's own functions. A
// recording changes the places that the loader fills for objects linked to NCCL. They lead to a
// stub of ours, and so does what dlsym finds. A stub notes the first call and jumps on, with all
// arguments. In a replay a library that `deja replay` makes has the names (cli/replay/start/
// newer_nccl.h). Any thread. Nothing is allocated.
#ifndef DEJA_PRELOAD_HOOKS_NCCL_NEWER_CALLS_H_
#define DEJA_PRELOAD_HOOKS_NCCL_NEWER_CALLS_H_

namespace deja::preload {

struct Engine;

// True if NCCL may have a function of this name, and Deja does not know it: "ncclFuture".
bool IsNewerNcclName(const char* name);

// Leads newly loaded objects to the stubs. Cheap where none has been loaded since the last time.
void WatchNewerCalls();

// The program has found `function` under such a name by dlsym. What it gets instead; null: that.
void* NewerCallFor(const char* name, void* function);

// Tells the engine of a function that the program may call, or (`is_made`) is about to.
void SayNewerCall(Engine& engine, const char* name, bool is_made);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_NCCL_NEWER_CALLS_H_
