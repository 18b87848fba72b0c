// Call stacks as module + offset, each distinct one numbered once per process.
//
// CaptureStack() walks the calling thread's stack (stack_walk.h), or makes sure that it was walked
// before (stack_memo.h). It leaves out Deja's own frames, puts those of Python in front
// (python_stack.h), and returns the number of that stack. `sink` gets each stack and module when it
// is first seen, before the number is returned. So a trace never refers to a stack that it does not
// define. Any thread. No allocation after initialisation and a thread's first stack (fixed tables;
// when they are full the stack is 0). CaptureStackInSignal is async-signal-safe as far as the
// unwinder is, and interns nothing.
#ifndef DEJA_PRELOAD_STACK_STACK_H_
#define DEJA_PRELOAD_STACK_STACK_H_

#include <cstdint>

#include "common/ids.h"
#include "common/inline_vec.h"
#include "format/wire/messages.h"

namespace deja::preload {

class StackSink {
 public:
  virtual ~StackSink() = default;
  // What a stack refers to, in front of the first event that uses it. On the capturing thread.
  virtual void OnModule(const format::ModuleLoaded& module) = 0;
  virtual void OnStack(const format::StackDefined& stack) = 0;
};

using Frames = InlineVec<format::StackFrame, format::kMaxStackFrames>;

StackId CaptureStack(StackSink& sink);

// Frames from the point where a signal interrupted the program; frame 0 is the faulting pc itself.
void CaptureStackInSignal(void* ucontext, Frames& frames);
// Those of Python after them, where the interpreter is on this thread (python_stack.h). It reads
// the interpreter's memory, which may be damaged: for WithoutFault (fault_escape.h).
void AddPythonFramesInSignal(Frames& frames);

// Makes sure that all modules loaded now have been told to `sink` (for crashes: frames name
// modules).
void ReportModules(StackSink& sink);

// When a thread of the program ends: what is remembered for it is another's.
void EndThreadStacks();

// In a child after fork: everything is defined again, in the child's own sink, with new numbers.
void ResetStacksInChild();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_STACK_H_
