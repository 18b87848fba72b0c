#include "preload/hooks/python/raised.h"

#include <utility>

#include "preload/hooks/python/arguments.h"

namespace deja::preload {
namespace {

constinit PyObject* g_describe = nullptr;

void GiveUp(PyObject* object) {
  if (object != nullptr) Python().Py_DecRef(object);
}

}  // namespace

void SetDescribe(PyObject* describe) {
  g_describe = NewReference(describe);
}

Raised::~Raised() {
  for (PyObject* object : {type_, value_, traceback_, text_}) GiveUp(object);
}

void Raised::Take() {
  const Interpreter& py = Python();
  py.PyErr_Fetch(&type_, &value_, &traceback_);
  py.PyErr_NormalizeException(&type_, &value_, &traceback_);
}

std::string_view Raised::Describe() {
  text_ = Python().PyObject_CallFunctionObjArgs(g_describe, value_, nullptr);
  if (text_ == nullptr) {
    for (PyObject* object : {type_, value_, traceback_}) GiveUp(object);
    Take();
    return {};
  }
  const Bytes text(text_);
  return {text.data, text.size};
}

void Raised::GiveBack() {
  Python().PyErr_Restore(std::exchange(type_, nullptr), std::exchange(value_, nullptr),
                         std::exchange(traceback_, nullptr));
}

}  // namespace deja::preload
