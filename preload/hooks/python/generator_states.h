// States of random number generators as Python's side names them (builtins.h), for the trace or to
// compare them with it. The calling thread holds the interpreter's lock.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_GENERATOR_STATES_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_GENERATOR_STATES_H_

#include <cstdint>

#include "preload/hooks/python/interpreter.h"

namespace deja::preload {

// states and states_if of builtins.h.
PyObject* States(PyObject* self, PyObject* const* arguments, intptr_t count);
PyObject* StatesIf(PyObject* self, PyObject* const* arguments, intptr_t count);

// Before them: the names of what is asked of a tensor. False: an exception is set.
bool NameQuestionsToStates();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_GENERATOR_STATES_H_
