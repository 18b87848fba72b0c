// How operations of process groups end. Each has a built-in function for it (builtins.h). That
// hands the end to the recorder once, whichever thread learns of it first.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_ENDINGS_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_ENDINGS_H_

#include <cstdint>

#include "preload/hooks/python/interpreter.h"

namespace deja::preload {

// as_library and ending of builtins.h.
PyObject* AsLibrary(PyObject* self, PyObject* const* arguments, intptr_t count);
PyObject* NewEnding(PyObject* self, PyObject* const* arguments, intptr_t count);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_ENDINGS_H_
