// Walking a call stack without frame pointers, a few nanoseconds a frame.
//
// A fixed table remembers the rule of each code address (frame_rules.h), so a walk is one table
// look-up and two loads a frame. Where a rule is too complex the whole walk is done by LLVM's
// libunwind instead. Nothing is remembered here about the contents of the stack; a walk says what
// it depends on (stack_memo.h). Any thread, any stack (also alternate and coroutine stacks);
// async-signal-safe; no allocation. Memory outside the thread's own stack is only read after asking
// the kernel whether it can be.
#ifndef DEJA_PRELOAD_STACK_STACK_WALK_H_
#define DEJA_PRELOAD_STACK_STACK_WALK_H_

#include <cstdint>

#include "preload/stack/stack.h"

namespace deja::preload {

struct Registers {
  uint64_t pc = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;
};

// All that a walk's result depends on besides its start and the frame rules. A walk from the same
// start that would read the same words finds the same frames.
struct WalkInputs {
  static constexpr size_t kMaxWords = 128;
  bool complete = true;  // false: it depends on more than is here
  bool lasting = true;   // its frames are all in modules that stay, whose rules never change
  bool uses_fp = false;  // the start's
  uint32_t count = 0;
  // In the order in which they were read: where a word was depends on those before it only.
  uint32_t offsets[kMaxWords];  // in bytes, from the start's sp
  uint64_t values[kMaxWords];
};

// Appends the frames from `start` outwards, without those of Deja's own library. `exact`:
// `start.pc` is about to run, or faulted, and is not a return address. `careful`: check all memory,
// not only what is outside the stack. False when a frame was too complex; `frames` is then
// incomplete.
// What it depended on is in `inputs`, unless that is null.
bool WalkByRules(const Registers& start, bool exact, bool careful, Frames& frames,
                 WalkInputs* inputs = nullptr);

// The same with libunwind, from here or from a signal's context (may be null).
void WalkByLibunwind(const void* ucontext, Frames& frames);

// Where the function that calls this is. The frames from there are the same until it returns.
__attribute__((always_inline)) inline Registers Here() {
  Registers r;
#if defined(__x86_64__)
  asm volatile(
      "leaq 0(%%rip), %0\n\t"
      "movq %%rsp, %1\n\t"
      "movq %%rbp, %2"
      : "=&r"(r.pc), "=&r"(r.sp), "=r"(r.fp));
#endif
  return r;
}

// Frames of the calling thread from `start`, which is Here() of a function that is still running,
// and from a signal's context.
void WalkFrom(const Registers& start, Frames& frames, WalkInputs& inputs);
void WalkFromSignal(const void* ucontext, Frames& frames);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_STACK_WALK_H_
