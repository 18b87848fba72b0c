#include "preload/hooks/python/builtins.h"

#include <cstddef>
#include <cstring>

#include "preload/hooks/export.h"
#include "preload/hooks/python/arguments.h"
#include "preload/hooks/python/endings.h"
#include "preload/hooks/python/generator_states.h"
#include "preload/hooks/python/group_builtins.h"
#include "preload/hooks/python/plain_tensors.h"
#include "preload/hooks/python/raised.h"

extern "C" uint64_t deja_impl_step(uint64_t step);

namespace deja::preload {
namespace {

PyObject* Step(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  uint64_t step = py.PyLong_AsUnsignedLongLongMask(arguments[0]);
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  {
    const Unlocked unlocked;
    step = deja_impl_step(step);
  }
  return py.PyLong_FromUnsignedLongLong(step);
}

PyObject* HasBytes(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  const Bytes held(arguments[1]);
  const void* const address = Address(arguments[0]);
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  const bool has = held.data != nullptr && std::memcmp(address, held.data, held.size) == 0;
  return NewReference(has ? py.true_object : py.false_object);
}

PyObject* ValueByte(PyObject*, PyObject* const* arguments, intptr_t) {
  // pybind11's instance: the head of an object, and the address of the value.
  constexpr size_t kHead = 16;
  const uint64_t place = Word(arguments[1]);
  if (Python().PyErr_Occurred() != nullptr) return nullptr;
  const uint8_t* value = nullptr;
  std::memcpy(&value, reinterpret_cast<const char*>(arguments[0]) + kHead, sizeof value);
  return Python().PyLong_FromLongLong(value[place]);
}

using Function = PyObject* (*)(PyObject*, PyObject* const*, intptr_t);

// `function`, for that number of arguments: another one is an error of Deja's own.
template <Function function, intptr_t wanted>
PyObject* Checked(PyObject* self, PyObject* const* arguments, intptr_t count) {
  if (count == wanted) return function(self, arguments, count);
  Python().PyErr_SetString(*Python().type_error, "deja: another number of arguments");
  return nullptr;
}

// Python keeps their addresses.
constinit PyMethod g_methods[] = {
    {"group_call", &Checked<CallOfGroup, 15>, kFastCall, nullptr},
    {"ending", &Checked<NewEnding, 5>, kFastCall, nullptr},
    {"as_library", &Checked<AsLibrary, 2>, kFastCall, nullptr},
    {"operation", &Checked<Operation, 11>, kFastCall, nullptr},
    {"describe_tensors", &Checked<DescribeTensors, 3>, kFastCall, nullptr},
    {"step", &Checked<Step, 1>, kFastCall, nullptr},
    {"states", &Checked<States, 1>, kFastCall, nullptr},
    {"states_if", &Checked<StatesIf, 5>, kFastCall, nullptr},
    {"has_bytes", &Checked<HasBytes, 2>, kFastCall, nullptr},
    {"value_byte", &Checked<ValueByte, 2>, kFastCall, nullptr},
};

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the entry point below is this file's only name

DEJA_EXPORT int deja_impl_python_builtins(void* dict, void* describe) {
  if (!FindInterpreter()) return 0;
  const Interpreter& py = Python();
  if (!NameQuestionsToStates()) return 0;
  SetDescribe(static_cast<PyObject*>(describe));
  for (PyMethod& method : g_methods) {
    const Reference made(py.PyCFunction_NewEx(&method, nullptr, nullptr));
    if (!made) return 0;
    py.PyDict_SetItemString(static_cast<PyObject*>(dict), method.name, made.get());
  }
  return 1;
}
