// Two of the functions of builtins.h: tensors as runs of bytes, where each is dense and in host
// memory. Both are called as Python's built-in functions are, with the interpreter's lock held.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_PLAIN_TENSORS_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_PLAIN_TENSORS_H_

#include <cstdint>

#include "preload/hooks/python/interpreter.h"

namespace deja::preload {

// describe_tensors of builtins.h.
PyObject* DescribeTensors(PyObject* self, PyObject* const* arguments, intptr_t count);
// plain of builtins.h.
PyObject* Plain(PyObject* self, PyObject* const* arguments, intptr_t count);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_PLAIN_TENSORS_H_
