#include "preload/hooks/python/builtins.h"

#include <cstddef>
#include <cstring>
#include <string_view>

#include "preload/hooks/export.h"
#include "preload/hooks/python/group_operations.h"
#include "preload/hooks/python/interpreter.h"
#include "preload/hooks/python/plain_tensors.h"
#include "preload/process/guard.h"

extern "C" uint64_t deja_impl_step(uint64_t step);
extern "C" void deja_impl_state(const char* name, const void* data, size_t bytes);

namespace deja::preload {
namespace {

constinit PyObject* g_describe = nullptr;

int32_t Int(PyObject* number) {
  return static_cast<int32_t>(Python().PyLong_AsLongLong(number));
}

uint64_t Word(PyObject* number) {
  return Python().PyLong_AsUnsignedLongLong(number);
}

const void* Address(PyObject* number) {
  return reinterpret_cast<const void*>(Word(number));
}

// Null for None.
const char* Text(PyObject* text) {
  return text == Python().none ? nullptr : Python().PyUnicode_AsUTF8(text);
}

struct Bytes {
  explicit Bytes(PyObject* held) {
    if (held == Python().none) return;
    data = Python().PyBytes_AsString(held);
    size = static_cast<uint64_t>(Python().PyBytes_Size(held));
  }
  const char* data = nullptr;
  uint64_t size = 0;
};

Pieces PiecesOf(PyObject* held) {
  const Bytes bytes(held);
  return {reinterpret_cast<const Piece*>(bytes.data), bytes.size / sizeof(Piece)};
}

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

// As PyErr_Fetch gives it.
struct Raised {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
};

// What an operation of a process group is made of for who makes it.
struct RealCall {
  PyObject* real = nullptr;
  PyObject* arguments = nullptr;
  PyObject* keywords = nullptr;
  Unlocked* unlocked = nullptr;
  PyObject* value = nullptr;
  Raised raised;
  PyObject* text = nullptr;  // what a trace has for the exception
};

void KeepException(RealCall& made, std::string_view& error) {
  const Interpreter& py = Python();
  Raised& raised = made.raised;
  py.PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
  py.PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
  made.text = py.PyObject_CallFunctionObjArgs(g_describe, raised.value, nullptr);
  const Bytes text(made.text == nullptr ? py.none : made.text);
  py.PyErr_Clear();
  if (text.data != nullptr) error = {text.data, text.size};
}

bool MakeRealCall(void* context, std::string_view& error) {
  auto& made = *static_cast<RealCall*>(context);
  made.unlocked->Lock([&] {
    made.value = Python().PyObject_Call(made.real, made.arguments, made.keywords);
    if (made.value == nullptr) KeepException(made, error);
  });
  return made.value == nullptr;
}

PyObject* NewText(std::string_view text) {
  if (text.data() == nullptr) return NewReference(Python().none);
  return Python().PyBytes_FromStringAndSize(text.data(), static_cast<intptr_t>(text.size()));
}

PyObject* AnswerOf(const GroupOperation& call) {
  const Interpreter& py = Python();
  const Reference state(py.PyLong_FromLongLong(static_cast<int>(call.state)));
  const Reference src(py.PyLong_FromLongLong(call.src));
  const Reference error(NewText(call.error));
  if (!state || !src || !error) return nullptr;
  return py.PyTuple_Pack(3, state.get(), src.get(), error.get());
}

PyObject* CallOfGroup(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  RealCall made;
  made.real = arguments[1];
  made.arguments = arguments[2];
  made.keywords = arguments[3];
  GroupOperation call;
  call.inputs = PiecesOf(arguments[4]);
  call.outputs = PiecesOf(arguments[5]);
  call.group = Word(arguments[6]);
  call.dtype = static_cast<uint32_t>(Int(arguments[7]));
  call.op = Int(arguments[8]);
  call.peer = Int(arguments[9]);
  call.tag = Int(arguments[10]);
  call.python_stack = static_cast<uint32_t>(Word(arguments[11]));
  call.nranks = Int(arguments[12]);
  call.name = Text(arguments[13]);
  call.identity = Word(arguments[14]);
  call.real = &MakeRealCall;
  call.context = &made;
  const char* const function = Text(arguments[0]);
  if (function == nullptr || py.PyErr_Occurred() != nullptr) return nullptr;
  call.function = function;
  bool is_served = false;
  {
    Unlocked unlocked;
    made.unlocked = &unlocked;
    is_served = CallGroup(call);
  }
  const Reference text(made.text);
  if (made.raised.type != nullptr) {
    py.PyErr_Restore(made.raised.type, made.raised.value, made.raised.traceback);
    return nullptr;
  }
  const Reference value(made.value != nullptr ? made.value : NewReference(py.none));
  const Reference group(py.PyLong_FromUnsignedLongLong(call.group));
  const Reference operation(py.PyLong_FromUnsignedLongLong(call.operation));
  const Reference answer(is_served ? AnswerOf(call) : NewReference(py.none));
  if (!group || !operation || !answer) return nullptr;
  return py.PyTuple_Pack(4, value.get(), group.get(), operation.get(), answer.get());
}

PyObject* EndOfOperation(PyObject*, PyObject* const* arguments, intptr_t) {
  GroupEnd end;
  end.group = Word(arguments[0]);
  end.operation = Word(arguments[1]);
  end.dtype = static_cast<uint32_t>(Int(arguments[2]));
  const Pieces outputs = PiecesOf(arguments[3]);
  end.src = Int(arguments[4]);
  const Bytes error(arguments[5]);
  if (Python().PyErr_Occurred() != nullptr) return nullptr;
  end.failed = error.data != nullptr;
  end.error = {error.data, error.size};
  {
    const Unlocked unlocked;
    EndGroupOperation(end, outputs);
  }
  return NewReference(Python().none);
}

PyObject* AsLibrary(PyObject*, PyObject* const* arguments, intptr_t) {
  const Guard guard;
  return Python().PyObject_Call(arguments[0], arguments[1], nullptr);
}

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

PyObject* State(PyObject*, PyObject* const* arguments, intptr_t) {
  const Bytes name(arguments[0]);
  const void* const data = Address(arguments[1]);
  const uint64_t size = Word(arguments[2]);
  if (Python().PyErr_Occurred() != nullptr) return nullptr;
  deja_impl_state(name.data, data, size);
  return NewReference(Python().none);
}

PyObject* Twister(PyObject*, PyObject* const* arguments, intptr_t) {
  constexpr size_t kWord = 4;
  constexpr size_t kWords = 624 * kWord;
  const Interpreter& py = Python();
  const Bytes name(arguments[0]);
  const char* const held = static_cast<const char*>(Address(arguments[1]));
  const bool has_gauss = arguments[2] != py.none;
  const double gauss = has_gauss ? py.PyFloat_AsDouble(arguments[2]) : 0;
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  char state[kWords + kWord + sizeof gauss];
  std::memcpy(state, held + kWord, kWords);
  std::memcpy(state + kWords, held, kWord);
  std::memcpy(state + kWords + kWord, &gauss, sizeof gauss);
  deja_impl_state(name.data, state, has_gauss ? sizeof state : kWords + kWord);
  return NewReference(py.none);
}

PyObject* HasBytes(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  const Bytes held(arguments[1]);
  const void* const address = Address(arguments[0]);
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  const bool has = held.data != nullptr && std::memcmp(address, held.data, held.size) == 0;
  return NewReference(has ? py.true_object : py.false_object);
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
    {"group_done", &Checked<EndOfOperation, 6>, kFastCall, nullptr},
    {"as_library", &Checked<AsLibrary, 2>, kFastCall, nullptr},
    {"plain", &Checked<Plain, 1>, kFastCall, nullptr},
    {"describe_tensors", &Checked<DescribeTensors, 3>, kFastCall, nullptr},
    {"step", &Checked<Step, 1>, kFastCall, nullptr},
    {"state", &Checked<State, 3>, kFastCall, nullptr},
    {"twister", &Checked<Twister, 3>, kFastCall, nullptr},
    {"has_bytes", &Checked<HasBytes, 2>, kFastCall, nullptr},
};

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the entry point below is this file's only name

DEJA_EXPORT int deja_impl_python_builtins(void* dict, void* describe) {
  if (!FindInterpreter()) return 0;
  const Interpreter& py = Python();
  g_describe = NewReference(static_cast<PyObject*>(describe));
  for (PyMethod& method : g_methods) {
    const Reference made(py.PyCFunction_NewEx(&method, nullptr, nullptr));
    if (!made) return 0;
    py.PyDict_SetItemString(static_cast<PyObject*>(dict), method.name, made.get());
  }
  return 1;
}
