#include "preload/hooks/python/plain_tensors.h"

namespace deja::preload {
namespace {

// What describe_tensors was given, and the names of what is asked of a tensor. Under the
// interpreter's lock.
struct Torch {
  PyObject* tensor = nullptr;
  PyObject* strided = nullptr;
  PyObject* dtypes = nullptr;
  PyObject* is_cpu = nullptr;
  PyObject* layout = nullptr;
  PyObject* is_contiguous = nullptr;
  PyObject* dtype = nullptr;
  PyObject* data_ptr = nullptr;
  PyObject* numel = nullptr;
  PyObject* element_size = nullptr;
};
constinit Torch g_torch;

// Appends the tensors to the list `flat`. False: an exception is set.
bool Flatten(PyObject* tensors, PyObject* flat) {
  const Interpreter& py = Python();
  if (tensors == py.none) return true;
  const int is_one = py.PyObject_IsInstance(tensors, g_torch.tensor);
  if (is_one != 0) return is_one > 0 && py.PyList_Append(flat, tensors) == 0;
  const Reference each(py.PyObject_GetIter(tensors));
  if (!each) return false;
  while (PyObject* next = py.PyIter_Next(each.get())) {
    const Reference item(next);
    if (!Flatten(item.get(), flat)) return false;
  }
  return py.PyErr_Occurred() == nullptr;
}

bool Ask(PyObject* tensor, PyObject* method, uint64_t& answer) {
  const Interpreter& py = Python();
  const Reference value(py.PyObject_CallMethodObjArgs(tensor, method, nullptr));
  answer = !value ? 0 : py.PyLong_AsUnsignedLongLong(value.get());
  return value && (answer != ~uint64_t{0} || py.PyErr_Occurred() == nullptr);
}

// 1: it is; 0: it is not; -1: an exception is set.
int IsTrue(PyObject* owned) {
  const Reference value(owned);
  return value ? Python().PyObject_IsTrue(value.get()) : -1;
}

int IsPlain(PyObject* tensor) {
  const Interpreter& py = Python();
  const int is_cpu = IsTrue(py.PyObject_GetAttr(tensor, g_torch.is_cpu));
  if (is_cpu != 1) return is_cpu;
  const Reference layout(py.PyObject_GetAttr(tensor, g_torch.layout));
  if (layout.get() != g_torch.strided) return layout ? 0 : -1;
  return IsTrue(py.PyObject_CallMethodObjArgs(tensor, g_torch.is_contiguous, nullptr));
}

// As IsPlain.
int Add(PyObject* tensor, PlainTensors& found) {
  const Interpreter& py = Python();
  const int is_plain = IsPlain(tensor);
  if (is_plain != 1) return is_plain;
  const Reference dtype(py.PyObject_GetAttr(tensor, g_torch.dtype));
  if (!dtype) return -1;
  PyObject* known = py.PyDict_GetItem(g_torch.dtypes, dtype.get());
  long long number = kBytes;
  uint64_t size = 0;
  if (known != nullptr) {
    number = py.PyLong_AsLongLong(py.PyTuple_GetItem(known, 0));
    size = static_cast<uint64_t>(py.PyLong_AsLongLong(py.PyTuple_GetItem(known, 1)));
  } else if (!Ask(tensor, g_torch.element_size, size)) {
    return -1;
  }
  found.dtype = found.dtype == kNoTensors || found.dtype == number ? number : kBytes;
  uint64_t address = 0;
  uint64_t elements = 0;
  if (!Ask(tensor, g_torch.data_ptr, address) || !Ask(tensor, g_torch.numel, elements)) return -1;
  return found.all.push_back({reinterpret_cast<void*>(address), elements * size}) ? 1 : 0;
}

}  // namespace

PyObject* DescribeTensors(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  g_torch.tensor = NewReference(arguments[0]);
  g_torch.strided = NewReference(arguments[1]);
  g_torch.dtypes = NewReference(arguments[2]);
  g_torch.is_cpu = py.PyUnicode_InternFromString("is_cpu");
  g_torch.layout = py.PyUnicode_InternFromString("layout");
  g_torch.is_contiguous = py.PyUnicode_InternFromString("is_contiguous");
  g_torch.dtype = py.PyUnicode_InternFromString("dtype");
  g_torch.data_ptr = py.PyUnicode_InternFromString("data_ptr");
  g_torch.numel = py.PyUnicode_InternFromString("numel");
  g_torch.element_size = py.PyUnicode_InternFromString("element_size");
  return NewReference(py.none);
}

int FindPlain(PyObject* tensors, PlainTensors& found) {
  const Interpreter& py = Python();
  found.flat.Own(py.PyList_New(0));
  if (!found.flat || !Flatten(tensors, found.flat.get())) return -1;
  const Reference each(py.PyObject_GetIter(found.flat.get()));
  while (PyObject* next = each ? py.PyIter_Next(each.get()) : nullptr) {
    const Reference tensor(next);
    const int is_plain = Add(tensor.get(), found);
    if (is_plain != 1) return is_plain;
  }
  return py.PyErr_Occurred() == nullptr ? 1 : -1;
}

}  // namespace deja::preload
