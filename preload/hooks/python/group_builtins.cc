#include "preload/hooks/python/group_builtins.h"

#include <string_view>

#include "preload/hooks/python/arguments.h"
#include "preload/hooks/python/plain_tensors.h"
#include "preload/hooks/python/raised.h"

namespace deja::preload {
namespace {

// What an operation of a process group is made of for who makes it.
struct RealCall {
  PyObject* real = nullptr;
  PyObject* arguments = nullptr;
  PyObject* keywords = nullptr;
  Unlocked* unlocked = nullptr;
  Reference value{nullptr};
  Raised raised;
  Reference answer{nullptr};  // as group_call returns it
};

bool MakeRealCall(void* context, std::string_view& error) {
  auto& made = *static_cast<RealCall*>(context);
  made.unlocked->Lock([&] {
    made.value.Own(Python().PyObject_Call(made.real, made.arguments, made.keywords));
    if (made.value) return;
    made.raised.Take();
    error = made.raised.Describe();
  });
  return !made.value;
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

// Has the operation made by real(*arguments, **keywords), three objects. False: an exception is
// set.
bool Make(PyObject* const* call_of_real, GroupOperation& call, RealCall& made) {
  made.real = call_of_real[0];
  made.arguments = call_of_real[1];
  made.keywords = call_of_real[2];
  call.real = &MakeRealCall;
  call.context = &made;
  bool is_served = false;
  {
    Unlocked unlocked;
    made.unlocked = &unlocked;
    is_served = CallGroup(call);
  }
  if (made.raised) {
    made.raised.GiveBack();
    return false;
  }
  made.answer.Own(is_served ? AnswerOf(call) : NewReference(Python().none));
  if (!made.value) made.value.Own(NewReference(Python().none));
  return static_cast<bool>(made.answer);
}

// The number of the element type of tensors that are read and of tensors that are written.
long long TypeOf(const PlainTensors& read, const PlainTensors& written) {
  if (read.dtype == kNoTensors) return written.dtype == kNoTensors ? kBytes : written.dtype;
  return written.dtype == kNoTensors || written.dtype == read.dtype ? read.dtype : kBytes;
}

PyObject* BytesOf(const PlainTensors& tensors) {
  return Python().PyBytes_FromStringAndSize(
      reinterpret_cast<const char*>(tensors.all.begin()),
      static_cast<intptr_t>(tensors.all.size() * sizeof(Piece)));
}

}  // namespace

PyObject* CallOfGroup(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
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
  const char* const function = Text(arguments[0]);
  if (function == nullptr || py.PyErr_Occurred() != nullptr) return nullptr;
  call.function = function;
  RealCall made;
  if (!Make(arguments + 1, call, made)) return nullptr;
  const Reference group(py.PyLong_FromUnsignedLongLong(call.group));
  const Reference operation(py.PyLong_FromUnsignedLongLong(call.operation));
  if (!group || !operation) return nullptr;
  return py.PyTuple_Pack(4, made.value.get(), group.get(), operation.get(), made.answer.get());
}

PyObject* Operation(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  const bool is_in_place = arguments[4] == arguments[5];
  PlainTensors written;
  PlainTensors other;
  const PlainTensors& read = is_in_place ? written : other;
  const int are_plain = FindPlain(arguments[5], written);
  if (are_plain < 0) return nullptr;
  const int are_all = are_plain == 0 || is_in_place ? are_plain : FindPlain(arguments[4], other);
  if (are_all < 0) return nullptr;
  if (are_all == 0) return NewReference(py.none);
  GroupOperation call;
  call.inputs = {read.all.begin(), read.all.size()};
  call.outputs = {written.all.begin(), written.all.size()};
  call.dtype = static_cast<uint32_t>(TypeOf(read, written));
  call.group = Word(arguments[6]);
  call.op = Int(arguments[7]);
  call.peer = Int(arguments[8]);
  call.tag = Int(arguments[9]);
  call.python_stack = static_cast<uint32_t>(Word(arguments[10]));
  const char* const function = Text(arguments[0]);
  if (function == nullptr || py.PyErr_Occurred() != nullptr) return nullptr;
  call.function = function;
  RealCall made;
  if (!Make(arguments + 1, call, made)) return nullptr;
  const Reference operation(py.PyLong_FromUnsignedLongLong(call.operation));
  const Reference pieces(BytesOf(written));
  const Reference dtype(py.PyLong_FromLongLong(call.dtype));
  if (!operation || !pieces || !dtype) return nullptr;
  return py.PyTuple_Pack(7, made.value.get(), operation.get(), made.answer.get(), read.flat.get(),
                         written.flat.get(), pieces.get(), dtype.get());
}

}  // namespace deja::preload
