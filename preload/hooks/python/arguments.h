// The arguments of built-in functions of Deja's, as values of C++. What is of another type sets an
// exception: the caller looks once, after all of them. The calling thread holds the interpreter's
// lock; what is not owned here lives as long as the argument.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_ARGUMENTS_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_ARGUMENTS_H_

#include <cstdint>

#include "preload/hooks/python/group_operations.h"
#include "preload/hooks/python/interpreter.h"

namespace deja::preload {

inline int32_t Int(PyObject* number) {
  return static_cast<int32_t>(Python().PyLong_AsLongLong(number));
}

inline uint64_t Word(PyObject* number) {
  return Python().PyLong_AsUnsignedLongLong(number);
}

inline const void* Address(PyObject* number) {
  return reinterpret_cast<const void*>(Word(number));
}

// Null for None.
inline const char* Text(PyObject* text) {
  return text == Python().none ? nullptr : Python().PyUnicode_AsUTF8(text);
}

// A bytes object, or None.
struct Bytes {
  // Null for None.
  explicit Bytes(PyObject* held) {
    if (held == Python().none) return;
    data = Python().PyBytes_AsString(held);
    size = static_cast<uint64_t>(Python().PyBytes_Size(held));
  }
  const char* data = nullptr;
  uint64_t size = 0;
};

// The tensors that a bytes object of group_operations.h's Piece names.
inline Pieces PiecesOf(PyObject* held) {
  const Bytes bytes(held);
  return {reinterpret_cast<const Piece*>(bytes.data), bytes.size / sizeof(Piece)};
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_ARGUMENTS_H_
