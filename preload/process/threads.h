// Threads of the program: stable names and numbers.
//
// A thread's name is its parent's name, a dot, and the number of the child in the parent's creation
// order (from 1); the main thread is "0". Names are the same in every run of a deterministic
// program; numbers (ThreadIndex) are given out at a thread's first event and are not. Threads that
// Deja or the real library create have no name and are never seen by an engine. A thread that was
// not made by pthread_create or thrd_create (raw clone, callbacks on threads of the C library) is
// called "?" and a number.
//
// Self() is valid on any thread at any time, also before main; its record is never freed.
#ifndef DEJA_PRELOAD_PROCESS_THREADS_H_
#define DEJA_PRELOAD_PROCESS_THREADS_H_

#include <atomic>
#include <cstdint>

#include "common/ids.h"
#include "preload/process/next_program.h"

namespace deja::format {
class EventSink;
}

namespace deja::preload {

struct ThreadRecord {
  char name[120] = {};  // "0.1.2"; a chain that is too long ends in "~" and a number
  ThreadIndex index = 0;
  uint32_t children = 0;              // threads created so far by this one
  uint32_t processes = 0;             // processes made so far by this one
  uint32_t making = 0;                // number of the one that fork or vfork is making; 0: none
  int making_pid = 0;                 // in a replay: the number that the thread believes to have
  NextProgram made_program;           // what a vfork child, which shares this memory, becomes
  uint32_t group_depth = 0;           // ncclGroupStart nesting
  uint64_t next_seq = 0;              // Event.seq of the next event of this thread
  format::EventSink* sink = nullptr;  // the recorder's; null in a replay
  void* engine_state = nullptr;       // the engine's own per-thread state
};

ThreadRecord& Self();

// For pthread_hooks.cc. A new record, or null if there is no memory.
ThreadRecord* NewThreadRecord();
// Names `child` as the next child of `parent`, the calling thread.
void NameChild(ThreadRecord& parent, ThreadRecord& child);
// Makes `record` that of the calling thread, which has none yet.
void SetSelf(ThreadRecord* record);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_THREADS_H_
