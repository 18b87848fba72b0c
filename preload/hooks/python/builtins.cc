#include "preload/hooks/python/builtins.h"

#include <cstddef>
#include <cstring>

#include "preload/hooks/export.h"
#include "preload/hooks/python/c10d_api.h"
#include "preload/hooks/python/interpreter.h"
#include "preload/hooks/python/plain_tensors.h"
#include "preload/process/guard.h"

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

// An array of deja_piece.
struct Pieces {
  explicit Pieces(PyObject* held) {
    const Bytes bytes(held);
    all = reinterpret_cast<const deja_piece*>(bytes.data);
    count = bytes.size / sizeof(deja_piece);
  }
  const deja_piece* all;
  uint64_t count;
};

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
  deja_group_call* call = nullptr;
  Unlocked* unlocked = nullptr;
  PyObject* value = nullptr;
  Raised raised;
  PyObject* text = nullptr;  // what a trace has for the exception
};

void KeepException(RealCall& made) {
  const Interpreter& py = Python();
  Raised& raised = made.raised;
  py.PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
  py.PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
  made.text = py.PyObject_CallFunctionObjArgs(g_describe, raised.value, nullptr);
  const bool has_text = made.text != nullptr && py.PyBytes_AsString(made.text) != nullptr;
  py.PyErr_Clear();
  made.call->error = has_text ? py.PyBytes_AsString(made.text) : "";
  made.call->error_size = has_text ? static_cast<uint64_t>(py.PyBytes_Size(made.text)) : 0;
}

void MakeRealCall(void* context) {
  auto& made = *static_cast<RealCall*>(context);
  made.unlocked->Lock([&made] {
    made.value = Python().PyObject_Call(made.real, made.arguments, made.keywords);
    if (made.value == nullptr) KeepException(made);
  });
}

PyObject* AnswerOf(const deja_group_call& call) {
  const Interpreter& py = Python();
  const Reference state(py.PyLong_FromLongLong(call.state));
  const Reference src(py.PyLong_FromLongLong(call.src));
  const Reference error(
      call.error == nullptr
          ? NewReference(py.none)
          : py.PyBytes_FromStringAndSize(call.error, static_cast<intptr_t>(call.error_size)));
  if (!state || !src || !error) return nullptr;
  return py.PyTuple_Pack(3, state.get(), src.get(), error.get());
}

PyObject* GroupCall(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  const Pieces inputs(arguments[4]);
  const Pieces outputs(arguments[5]);
  deja_group_call call{};
  call.size = sizeof call;
  call.function = Text(arguments[0]);
  call.inputs = inputs.all;
  call.input_count = inputs.count;
  call.outputs = outputs.all;
  call.output_count = outputs.count;
  call.group = Word(arguments[6]);
  call.dtype = Int(arguments[7]);
  call.op = Int(arguments[8]);
  call.peer = Int(arguments[9]);
  call.tag = Int(arguments[10]);
  call.python_stack = static_cast<uint32_t>(Word(arguments[11]));
  call.nranks = Int(arguments[12]);
  call.name = Text(arguments[13]);
  call.identity = Word(arguments[14]);
  call.src = -1;
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  RealCall made;
  made.real = arguments[1];
  made.arguments = arguments[2];
  made.keywords = arguments[3];
  made.call = &call;
  bool is_served = false;
  {
    Unlocked unlocked;
    made.unlocked = &unlocked;
    is_served = deja_impl_group_call(&call, &MakeRealCall, &made) != 0;
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

PyObject* GroupDone(PyObject*, PyObject* const* arguments, intptr_t) {
  const Pieces outputs(arguments[3]);
  const Bytes error(arguments[5]);
  deja_group_done done{};
  done.size = sizeof done;
  done.group = Word(arguments[0]);
  done.operation = Word(arguments[1]);
  done.dtype = Int(arguments[2]);
  done.outputs = outputs.all;
  done.output_count = outputs.count;
  done.src = Int(arguments[4]);
  done.error = error.data;
  done.error_size = error.size;
  if (Python().PyErr_Occurred() != nullptr) return nullptr;
  {
    const Unlocked unlocked;
    deja_impl_group_done(&done);
  }
  return NewReference(Python().none);
}

PyObject* AsLibrary(PyObject*, PyObject* const* arguments, intptr_t) {
  const Guard guard;
  return Python().PyObject_Call(arguments[0], arguments[1], nullptr);
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
  const bool has = std::memcmp(address, held.data, held.size) == 0;
  return NewReference(has ? py.true_object : py.false_object);
}

using Function = PyObject* (*)(PyObject*, PyObject* const*, intptr_t);

// `function`, for so many arguments: others are an error of Deja's own.
template <Function function, intptr_t wanted>
PyObject* Checked(PyObject* self, PyObject* const* arguments, intptr_t count) {
  if (count == wanted) return function(self, arguments, count);
  Python().PyErr_SetString(*Python().type_error, "deja: another number of arguments");
  return nullptr;
}

// Python keeps their addresses.
constinit PyMethod g_methods[] = {
    {"group_call", &Checked<GroupCall, 15>, kFastCall, nullptr},
    {"group_done", &Checked<GroupDone, 6>, kFastCall, nullptr},
    {"as_library", &Checked<AsLibrary, 2>, kFastCall, nullptr},
    {"plain", &Checked<Plain, 1>, kFastCall, nullptr},
    {"describe_tensors", &Checked<DescribeTensors, 3>, kFastCall, nullptr},
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
