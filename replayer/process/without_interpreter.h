// WithoutInterpreter: lets other threads of the program's Python run while this one waits for
// something that the program does not know it waits for.
#ifndef DEJA_REPLAYER_PROCESS_WITHOUT_INTERPRETER_H_
#define DEJA_REPLAYER_PROCESS_WITHOUT_INTERPRETER_H_

#include <dlfcn.h>

#include "preload/process/guard.h"

namespace deja::replayer {

// From here to End(), if this thread holds the interpreter's lock: a thread that takes a semaphore
// without wanting to wait goes on holding it.
class WithoutInterpreter {
 public:
  explicit WithoutInterpreter(bool wanted) {
    if (!wanted) return;
    const preload::Guard guard;
    const auto holds = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
    const auto leave = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyEval_SaveThread"));
    enter_ = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"));
    const auto lives = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    if (holds == nullptr || leave == nullptr || enter_ == nullptr || lives == nullptr) return;
    if (lives() != 0 && holds() != 0) state_ = leave();
  }
  // Not a destructor's work: the interpreter ends threads here when it has ended itself.
  void End() {
    if (state_ != nullptr) enter_(state_);
  }

 private:
  void (*enter_)(void*) = nullptr;
  void* state_ = nullptr;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_WITHOUT_INTERPRETER_H_
