// Stacks that were walked before, found again without a walk: a nanosecond a frame.
//
// Three things decide what a walk finds: the registers where it starts, the words that it reads
// from the stack, and the frame rules. If all of these are still the same, another walk would read
// the same words and end with the same frames. Live words and left-over ones make no difference,
// since the walk would take both. They are compared page by page in the order of the walk, up to
// the first difference. So no page is read that the walk would not have reached. The rules of
// modules that stay for good cannot change. For paths through others the loader is asked each time
// whether it has changed anything.
//
// The calling thread's: a small table, mapped at its first stack. No locks, no allocation
// otherwise. A signal handler that interrupted one of these functions finds nothing, and nothing is
// remembered.
#ifndef DEJA_PRELOAD_STACK_STACK_MEMO_H_
#define DEJA_PRELOAD_STACK_STACK_MEMO_H_

#include <cstdint>

#include "common/ids.h"
#include "preload/stack/stack_walk.h"

namespace deja::preload {

// The number of the stack that a walk from `here` would find, with that stack of Python's in front;
// 0: not known without a walk.
StackId RecallStack(const Registers& here, uint32_t python);

// That it is `id`. `version` is ModuleVersion() before the walk, `inputs` is complete.
void RememberStack(const Registers& here, uint32_t python, uint32_t version,
                   const WalkInputs& inputs, StackId id);

// For all threads: the numbers are no longer true.
void ForgetStacks();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_STACK_MEMO_H_
