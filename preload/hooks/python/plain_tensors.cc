#include "preload/hooks/python/plain_tensors.h"

#include "common/inline_vec.h"
#include "preload/hooks/python/group_operations.h"

namespace deja::preload {
namespace {

constexpr long long kBytes = 255;  // the number for element types that differ, or have none
constexpr long long kNone = -1;

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

// What a list of tensors has in common, and where they are.
struct Found {
  InlineVec<Piece, 256> all;
  long long dtype = kNone;
};

// As IsPlain.
int Add(PyObject* tensor, Found& pieces) {
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
  pieces.dtype = pieces.dtype == kNone || pieces.dtype == number ? number : kBytes;
  uint64_t address = 0;
  uint64_t elements = 0;
  if (!Ask(tensor, g_torch.data_ptr, address) || !Ask(tensor, g_torch.numel, elements)) return -1;
  return pieces.all.push_back({reinterpret_cast<void*>(address), elements * size}) ? 1 : 0;
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

PyObject* Plain(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  const Reference flat(py.PyList_New(0));
  if (!flat || !Flatten(arguments[0], flat.get())) return nullptr;
  const Reference each(py.PyObject_GetIter(flat.get()));
  if (!each) return nullptr;
  Found pieces;
  bool are_plain = true;
  while (PyObject* next = are_plain ? py.PyIter_Next(each.get()) : nullptr) {
    const Reference tensor(next);
    const int is_plain = Add(tensor.get(), pieces);
    if (is_plain < 0) return nullptr;
    are_plain = is_plain == 1;
  }
  const Reference dtype(py.PyLong_FromLongLong(pieces.dtype));
  const Reference held(are_plain ? py.PyBytes_FromStringAndSize(
                                       reinterpret_cast<const char*>(pieces.all.begin()),
                                       static_cast<intptr_t>(pieces.all.size() * sizeof(Piece)))
                                 : NewReference(py.none));
  if (!dtype || !held) return nullptr;
  return py.PyTuple_Pack(3, flat.get(), held.get(), dtype.get());
}

}  // namespace deja::preload
