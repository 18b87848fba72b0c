// Calls of process groups as Python's side makes them (builtins.h). The calling thread holds the
// interpreter's lock.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_GROUP_BUILTINS_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_GROUP_BUILTINS_H_

#include <cstdint>

#include "preload/hooks/python/interpreter.h"

namespace deja::preload {

// group_call and operation of builtins.h.
PyObject* CallOfGroup(PyObject* self, PyObject* const* arguments, intptr_t count);
PyObject* Operation(PyObject* self, PyObject* const* arguments, intptr_t count);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_GROUP_BUILTINS_H_
