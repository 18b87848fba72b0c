// Stacks of Python, as the program's Python tells them (hooks/c10d_api.h) or the interpreter dumps
// them when a signal ends the process.
//
// A function of Python's is a module like any other, with the path "python:FUNCTION:FILE" and
// without addresses; the offset of a frame in it is the line. So whatever has a stack has Python's
// frames in front of the native ones, and readers need to know nothing but that path.
//
// Fixed tables, filled and never shrunk; when they are full, what comes later has no frames of
// Python. Any thread. Nothing is allocated; interning and PythonFramesInSignal are
// async-signal-safe, and give up when the thread was interrupted in the midst of interning.
#ifndef DEJA_PRELOAD_STACK_PYTHON_STACK_H_
#define DEJA_PRELOAD_STACK_PYTHON_STACK_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "common/inline_vec.h"
#include "format/wire/messages.h"

namespace deja::preload {

// Functions of Python's have module numbers from here on, below kEndOfPythonModules.
inline constexpr uint32_t kFirstPythonModule = 4096;
inline constexpr uint32_t kEndOfPythonModules = 16384;

// Limit for one stack; frames further out are left away.
inline constexpr size_t kMaxPythonFrames = 40;
using PythonFrames = InlineVec<format::StackFrame, kMaxPythonFrames>;

// The number of the function `name` in `file`, the same each time. 0: the table is full.
uint32_t PythonModule(std::string_view name, std::string_view file);

// Null: there is no such module.
const char* PathOfPythonModule(uint32_t module);

// The number of a stack, innermost frame first; the same for the same frames. 0: none.
uint32_t InternPythonStack(std::span<const format::StackFrame> frames);

// From now on the calling thread is at that stack of Python's; 0: it is not known where. Returns
// the one before.
uint32_t EnterPythonStack(uint32_t stack);
// The number of the calling thread's place, as it has said itself. Otherwise, where the
// interpreter's layout is known, of what the interpreter does on this thread, without the frames of
// Deja's own code; 0: not known. Not in signal handlers.
uint32_t FindPythonStack();
std::span<const format::StackFrame> PythonStack(uint32_t number);

// Where CPython has what of a thread, in bytes; python/deja/interpreter/frames.py fills it in.
struct PythonLayout {
  uint64_t through = 0;                      // in a thread's state: what has the frame; 0: itself
  uint64_t current_frame = 0;                // there
  uint64_t previous = 0, executable = 0;     // in a frame
  uint64_t place = 0;                        // in a frame: the instruction that it is at
  uint64_t type = 0;                         // in any object
  uint64_t file = 0, function = 0;           // in a code object
  uint64_t instructions = 0;                 // in a code object
  uint64_t text_state = 0, text_length = 0;  // in a str
  uint64_t text_bytes = 0;                   // in a str of ASCII: its characters
  uint64_t more_of_text = 0;                 // what others have between there and theirs
  const void* code_type = nullptr;           // the type of code objects
  // The line of an instruction, or, where that is null, the line that a frame is at.
  int (*line_of_code)(const void* code, int instruction) = nullptr;
  int (*line_of_frame)(const void* frame) = nullptr;
  int (*is_alive)() = nullptr;       // Py_IsInitialized
  void* (*state)() = nullptr;        // PyGILState_GetThisThreadState
  const char* own_folder = nullptr;  // of Deja's own code, with the separator; null: none
};

// How the interpreter says where a thread is: PyGILState_GetThisThreadState with its
// _Py_DumpTraceback, which is made for signal handlers, or where its frames are.
using DumpTraceback = void (*)(int fd, void* thread_state);
using ThisThreadState = void* (*)();
void SetInterpreter(DumpTraceback dump, ThisThreadState state);
// Once, before any other thread of the program's runs Python; from then on a dump is not asked for.
void SetInterpreter(const PythonLayout& layout);
// Where the interpreter is on the calling thread, in a signal handler. Empty without interpreter.
void PythonFramesInSignal(PythonFrames& frames);

// Calls tell(number, path, context) for the functions that have not been told since the last reset.
// One thread at a time.
void TellPythonModules(void (*tell)(uint32_t number, std::string_view path, void* context),
                       void* context);

// In a child after fork: everything is defined again.
void ResetPythonStacksInChild();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_PYTHON_STACK_H_
