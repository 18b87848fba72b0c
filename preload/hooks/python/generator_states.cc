#include "preload/hooks/python/generator_states.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "preload/hooks/python/arguments.h"

extern "C" void deja_impl_state(const char* name, const void* data, size_t bytes);

namespace deja::preload {
namespace {

constinit PyObject* g_data_ptr = nullptr;
constinit PyObject* g_numel = nullptr;

// The parts of a tuple, which has them; null after one that it has not, with an exception set.
template <size_t count>
std::array<PyObject*, count> PartsOf(PyObject* tuple) {
  std::array<PyObject*, count> parts{};
  for (size_t i = 0; i < count; ++i) {
    parts[i] = Python().PyTuple_GetItem(tuple, static_cast<intptr_t>(i));
    if (parts[i] == nullptr) break;
  }
  return parts;
}

// Calls see(item) for each item of a list, as long as it returns true. False: it did not, or an
// exception is set.
template <typename See>
bool ForEach(PyObject* list, See see) {
  const Interpreter& py = Python();
  const Reference each(py.PyObject_GetIter(list));
  while (PyObject* next = each ? py.PyIter_Next(each.get()) : nullptr) {
    const Reference item(next);
    if (!see(item.get())) return false;
  }
  return py.PyErr_Occurred() == nullptr;
}

bool TellTwister(const char* name, const char* held, PyObject* gauss) {
  constexpr size_t kWord = 4;
  constexpr size_t kWords = 624 * kWord;
  const Interpreter& py = Python();
  const bool has_gauss = gauss != py.none;
  const double second = has_gauss ? py.PyFloat_AsDouble(gauss) : 0;
  if (py.PyErr_Occurred() != nullptr) return false;
  char state[kWords + kWord + sizeof second];
  std::memcpy(state, held + kWord, kWords);
  std::memcpy(state + kWords, held, kWord);
  std::memcpy(state + kWords + kWord, &second, sizeof second);
  deja_impl_state(name, state, has_gauss ? sizeof state : kWords + kWord);
  return true;
}

bool TellTensor(const char* name, PyObject* call) {
  const Interpreter& py = Python();
  const Reference tensor(py.PyObject_CallFunctionObjArgs(call, nullptr));
  if (!tensor) return false;
  const Reference address(py.PyObject_CallMethodObjArgs(tensor.get(), g_data_ptr, nullptr));
  const Reference bytes(py.PyObject_CallMethodObjArgs(tensor.get(), g_numel, nullptr));
  if (!address || !bytes) return false;
  const void* const data = Address(address.get());
  const uint64_t size = Word(bytes.get());
  if (py.PyErr_Occurred() != nullptr) return false;
  deja_impl_state(name, data, size);
  return true;
}

// False: an exception is set.
bool TellState(PyObject* told) {
  const Interpreter& py = Python();
  const auto [name, address, size, last] = PartsOf<4>(told);
  if (last == nullptr) return false;
  const Bytes text(name);
  if (address == py.none) return text.data != nullptr && TellTensor(text.data, size);
  const auto* const data = static_cast<const char*>(Address(address));
  const uint64_t bytes = size == py.none ? 0 : Word(size);
  if (py.PyErr_Occurred() != nullptr) return false;
  if (size == py.none) return TellTwister(text.data, data, last);
  deja_impl_state(text.data, data, bytes);
  return true;
}

bool HasAttribute(PyObject* check) {
  const auto [object, name, value] = PartsOf<3>(check);
  if (value == nullptr) return false;
  const Reference found(Python().PyObject_GetAttr(object, name));
  if (!found) Python().PyErr_Clear();
  return found.get() == value;
}

bool HasMemory(PyObject* check) {
  const auto [address, held] = PartsOf<2>(check);
  if (held == nullptr) return false;
  const Bytes bytes(held);
  const void* const data = Address(address);
  if (Python().PyErr_Occurred() != nullptr || bytes.data == nullptr) return false;
  return std::memcmp(data, bytes.data, bytes.size) == 0;
}

PyObject* Answer(bool is_true) {
  const Interpreter& py = Python();
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  return NewReference(is_true ? py.true_object : py.false_object);
}

}  // namespace

bool NameQuestionsToStates() {
  g_data_ptr = Python().PyUnicode_InternFromString("data_ptr");
  g_numel = Python().PyUnicode_InternFromString("numel");
  return g_data_ptr != nullptr && g_numel != nullptr;
}

PyObject* States(PyObject*, PyObject* const* arguments, intptr_t) {
  return Answer(ForEach(arguments[0], &TellState));
}

PyObject* StatesIf(PyObject*, PyObject* const* arguments, intptr_t) {
  PyObject* const modules = arguments[1];
  const auto is_absent = [modules](PyObject* name) {
    return Python().PyDict_GetItem(modules, name) == nullptr;
  };
  const bool holds = ForEach(arguments[0], &HasAttribute) && ForEach(arguments[2], is_absent) &&
                     ForEach(arguments[3], &HasMemory);
  return holds ? States(nullptr, arguments + 4, 1) : Answer(false);
}

}  // namespace deja::preload
