// An exception of Python's between the call that raised it and the caller that is given it. The
// calling thread holds the interpreter's lock.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_RAISED_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_RAISED_H_

#include <string_view>

#include "preload/hooks/python/interpreter.h"

namespace deja::preload {

// Once, before any exception is described: describe(error) is the text, as bytes, that a trace has.
void SetDescribe(PyObject* describe);

// Empty until it has taken one; one at a time.
class Raised {
 public:
  Raised() = default;
  ~Raised();
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

  // Takes the thread's exception, which there is.
  void Take();
  // The text that a trace has for it, valid as long as this is. Empty: describe() has raised, as a
  // handler of a signal may, and that is the exception from now on.
  [[nodiscard]] std::string_view Describe();
  // The thread has it again.
  void GiveBack();
  explicit operator bool() const { return type_ != nullptr; }

 private:
  // As PyErr_Fetch gives it.
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
  PyObject* text_ = nullptr;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_RAISED_H_
