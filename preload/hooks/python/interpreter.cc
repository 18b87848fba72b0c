#include "preload/hooks/python/interpreter.h"

#include <dlfcn.h>

#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit Interpreter g_interpreter;

template <typename Fn>
bool Find(const char* name, Fn& function) {
  function = reinterpret_cast<Fn>(TryDlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace

bool FindInterpreter() {
  Interpreter found;
  bool has_all = true;
#define DEJA_FIND(result, name, parameters) has_all = has_all && Find(#name, found.name);
  DEJA_PYTHON_FUNCTIONS(DEJA_FIND)
#undef DEJA_FIND
  if (!has_all) return false;
  has_all = Find("_Py_NoneStruct", found.none) && Find("_Py_TrueStruct", found.true_object) &&
            Find("_Py_FalseStruct", found.false_object) &&
            Find("PyExc_TypeError", found.type_error);
  g_interpreter = found;
  return has_all;
}

const Interpreter& Python() {
  return g_interpreter;
}

PyObject* NewReference(PyObject* object) {
  g_interpreter.Py_IncRef(object);
  return object;
}

}  // namespace deja::preload
