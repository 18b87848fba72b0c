// Stacks that were walked before, found again without a walk: a nanosecond a frame.
//
// What a walk finds is decided by the registers where it starts, the words that it reads from the
// stack, and the frame rules. So where start and rules are the same and each of those words is
// still what it was, another walk would read the same words and end with the same frames: whether
// they are live or left over makes no difference, since the walk would take them as well. They are
// compared page by page in the order of the walk, up to the first difference, so that no page is
// read that the walk would not have come to. The rules of modules that stay for good cannot change;
// for paths through others the loader is asked each time whether it has changed anything.
//
// Of the calling thread: a small table, mapped at its first stack. No locks, no allocation
// otherwise. In a signal handler that interrupted one of these functions nothing is found, and
// nothing remembered.
#ifndef DEJA_PRELOAD_STACK_STACK_MEMO_H_
#define DEJA_PRELOAD_STACK_STACK_MEMO_H_

#include <cstdint>

#include "common/ids.h"
#include "preload/stack/stack_walk.h"

namespace deja::preload {

// The number of the stack that a walk from `here` would find, with that stack of Python's in front;
// 0: nobody knows without walking.
StackId RecallStack(const Registers& here, uint32_t python);

// That it is `id`. `version` is ModuleVersion() before the walk, `inputs` is complete.
void RememberStack(const Registers& here, uint32_t python, uint32_t version,
                   const WalkInputs& inputs, StackId id);

// Of all threads: the numbers are no longer true.
void ForgetStacks();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_STACK_MEMO_H_
