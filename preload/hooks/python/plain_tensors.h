// Tensors as runs of bytes, where each is dense and in host memory. The calling thread holds the
// interpreter's lock.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_PLAIN_TENSORS_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_PLAIN_TENSORS_H_

#include <cstdint>

#include "common/inline_vec.h"
#include "preload/hooks/python/group_operations.h"
#include "preload/hooks/python/interpreter.h"

namespace deja::preload {

// Numbers of element types, beside those of describe_tensors: of tensors whose types differ, or
// that have one without a number; and of no tensors.
inline constexpr long long kBytes = 255;
inline constexpr long long kNoTensors = -1;

struct PlainTensors {
  Reference flat{nullptr};  // a list of them
  InlineVec<Piece, 256> all;
  long long dtype = kNoTensors;
};

// describe_tensors of builtins.h, which comes first.
PyObject* DescribeTensors(PyObject* self, PyObject* const* arguments, intptr_t count);

// tensors: a tensor, None, or lists of lists of tensors. 1: found has them; 0: one of them is not
// in host memory, or has gaps, or they are too many; -1: an exception is set.
int FindPlain(PyObject* tensors, PlainTensors& found);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_PLAIN_TENSORS_H_
