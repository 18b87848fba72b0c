// The C API of the interpreter that this process has. With it, functions of Deja's are called as
// Python's built-in ones are, without a frame of Python's on the way.
//
// Only functions of the stable ABI (PEP 384), which each CPython from 3.8 on exports. Objects of
// the interpreter are never looked into. The functions are found by name: the same library serves
// all versions, and loads where there is no Python. The calling thread holds the interpreter's
// lock.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_INTERPRETER_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_INTERPRETER_H_

#include <cstdint>
#include <utility>

namespace deja::preload {

struct PyObject;       // the interpreter's own
struct PyThreadState;  // the interpreter's own

// PyMethodDef of the stable ABI.
struct PyMethod {
  const char* name;
  // METH_FASTCALL: a new reference, or null with an exception set.
  PyObject* (*function)(PyObject* self, PyObject* const* arguments, intptr_t count);
  int flags;
  const char* doc;
};
inline constexpr int kFastCall = 0x0080;

// Return type, name, parameters.
#define DEJA_PYTHON_FUNCTIONS(X)                                          \
  X(void, Py_IncRef, (PyObject*))                                         \
  X(void, Py_DecRef, (PyObject*))                                         \
  X(PyObject*, PyBytes_FromStringAndSize, (const char*, intptr_t))        \
  X(char*, PyBytes_AsString, (PyObject*))                                 \
  X(intptr_t, PyBytes_Size, (PyObject*))                                  \
  X(PyObject*, PyCFunction_NewEx, (PyMethod*, PyObject*, PyObject*))      \
  X(void*, PyCapsule_GetPointer, (PyObject*, const char*))                \
  X(PyObject*, PyCapsule_New, (void*, const char*, void (*)(PyObject*)))  \
  X(PyObject*, PyDict_GetItem, (PyObject*, PyObject*))                    \
  X(int, PyDict_SetItemString, (PyObject*, const char*, PyObject*))       \
  X(void, PyErr_Clear, ())                                                \
  X(void, PyErr_Fetch, (PyObject**, PyObject**, PyObject**))              \
  X(void, PyErr_NormalizeException, (PyObject**, PyObject**, PyObject**)) \
  X(PyObject*, PyErr_Occurred, ())                                        \
  X(void, PyErr_Restore, (PyObject*, PyObject*, PyObject*))               \
  X(void, PyErr_SetString, (PyObject*, const char*))                      \
  X(void, PyEval_RestoreThread, (PyThreadState*))                         \
  X(PyThreadState*, PyEval_SaveThread, ())                                \
  X(double, PyFloat_AsDouble, (PyObject*))                                \
  X(PyObject*, PyIter_Next, (PyObject*))                                  \
  X(int, PyList_Append, (PyObject*, PyObject*))                           \
  X(PyObject*, PyList_New, (intptr_t))                                    \
  X(PyObject*, PyLong_FromLongLong, (long long))                          \
  X(PyObject*, PyLong_FromUnsignedLongLong, (unsigned long long))         \
  X(long long, PyLong_AsLongLong, (PyObject*))                            \
  X(unsigned long long, PyLong_AsUnsignedLongLong, (PyObject*))           \
  X(unsigned long long, PyLong_AsUnsignedLongLongMask, (PyObject*))       \
  X(PyObject*, PyObject_Call, (PyObject*, PyObject*, PyObject*))          \
  X(PyObject*, PyObject_CallFunctionObjArgs, (PyObject*, ...))            \
  X(PyObject*, PyObject_CallMethodObjArgs, (PyObject*, PyObject*, ...))   \
  X(PyObject*, PyObject_GetAttr, (PyObject*, PyObject*))                  \
  X(PyObject*, PyObject_GetIter, (PyObject*))                             \
  X(int, PyObject_IsInstance, (PyObject*, PyObject*))                     \
  X(int, PyObject_IsTrue, (PyObject*))                                    \
  X(PyThreadState*, PyThreadState_Get, ())                                \
  X(PyObject*, PyTuple_GetItem, (PyObject*, intptr_t))                    \
  X(PyObject*, PyTuple_Pack, (intptr_t, ...))                             \
  X(const char*, PyUnicode_AsUTF8, (PyObject*))                           \
  X(PyObject*, PyUnicode_InternFromString, (const char*))

struct Interpreter {
#define DEJA_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  DEJA_PYTHON_FUNCTIONS(DEJA_MEMBER)
#undef DEJA_MEMBER
  PyObject* none = nullptr;
  PyObject* true_object = nullptr;
  PyObject* false_object = nullptr;
  PyObject** type_error = nullptr;
};

// Once, before any of the others: finds all of it. False: this is no CPython that has it.
bool FindInterpreter();
// Valid after FindInterpreter has returned true.
const Interpreter& Python();

// A reference that is given up at the end of its scope.
class Reference {
 public:
  explicit Reference(PyObject* owned) : object_(owned) {}
  ~Reference() { Own(nullptr); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  [[nodiscard]] PyObject* get() const { return object_; }
  // Another one from now on.
  void Own(PyObject* owned) {
    PyObject* const before = std::exchange(object_, owned);
    if (before != nullptr) Python().Py_DecRef(before);
  }
  [[nodiscard]] PyObject* Release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

// Another reference to an object.
PyObject* NewReference(PyObject* object);

// The calling thread without the interpreter's lock.
class Unlocked {
 public:
  Unlocked() : state_(Python().PyEval_SaveThread()) {}
  ~Unlocked() { Python().PyEval_RestoreThread(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  // Has `call` made with the lock.
  template <typename Call>
  void Lock(Call call) {
    Python().PyEval_RestoreThread(state_);
    call();
    state_ = Python().PyEval_SaveThread();
  }

 private:
  PyThreadState* state_;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_INTERPRETER_H_
