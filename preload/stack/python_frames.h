// The frames of a CPython without _Py_DumpTraceback for others (3.13 and later), read where they
// are. Debuggers that look at the interpreter from outside do the same, by the offsets that it
// publishes for them (_Py_DebugOffsets, at the beginning of _PyRuntime).
//
// Async-signal-safe: nothing is allocated, and nothing of the interpreter's is changed. The caller
// sees to it that the layout is that of the interpreter, and that `state` is of the calling thread.
#ifndef DEJA_PRELOAD_STACK_PYTHON_FRAMES_H_
#define DEJA_PRELOAD_STACK_PYTHON_FRAMES_H_

#include <cstdint>

#include "digest/digest.h"
#include "preload/stack/python_stack.h"

namespace deja::preload {

enum class OwnFrames { kShown, kHidden };

// Frames from the innermost one outwards; at most as many as there is room for. own: those of
// Deja's own code.
void ReadPythonFrames(const PythonLayout& layout, const void* state, OwnFrames own,
                      PythonFrames& frames);

// A key that tells a stack from others, in less time than reading it. False: no frame of Python's.
// A key names code objects by address. A freed one could lend its key to another at the same
// address with the same texts.
bool KeyOfPythonFrames(const PythonLayout& layout, const void* state, Hash128& key);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_PYTHON_FRAMES_H_
