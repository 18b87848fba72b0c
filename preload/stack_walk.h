// Walking a call stack without frame pointers, a few nanoseconds a frame.
//
// Each code address has a rule (frame_rules.h) that is remembered in a fixed table, so a walk is
// one table look-up and two loads a frame. Where a rule is too complex the whole walk is done by
// LLVM's libunwind instead. Nothing is remembered about the contents of the stack, so a walk is
// never stale. Any thread, any stack (also alternate and coroutine stacks); async-signal-safe; no
// allocation. Memory outside the thread's own stack is only read after asking the kernel whether it
// can be.
#ifndef DEJA_PRELOAD_STACK_WALK_H_
#define DEJA_PRELOAD_STACK_WALK_H_

#include <cstdint>

#include "preload/stack.h"

namespace deja::preload {

struct Registers {
  uint64_t pc = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;
};

// Appends the frames from `start` outwards, without those of Deja's own library. `exact`:
// `start.pc` is about to run, or faulted, and is not a return address. `careful`: check all memory,
// not only what is outside the stack. False when a frame was too complex; `frames` is then
// incomplete.
bool WalkByRules(const Registers& start, bool exact, bool careful, Frames& frames);

// The same with libunwind, from here or from a signal's context (may be null).
void WalkByLibunwind(const void* ucontext, Frames& frames);

// Frames of the calling thread, and from a signal's context.
void WalkHere(Frames& frames);
void WalkFromSignal(const void* ucontext, Frames& frames);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_WALK_H_
