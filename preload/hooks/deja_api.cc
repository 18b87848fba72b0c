// The entry points of include/deja.h.
#include <cstring>

#include "format/messages.h"
#include "preload/digest.h"
#include "preload/engine.h"
#include "preload/guard.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"

namespace deja::preload {
namespace {

// Saturates: a shape whose product does not fit is nobody's memory.
bool ElementsOf(const int64_t* shape, int dims, size_t element_size, size_t* bytes) {
  size_t total = element_size;
  for (int i = 0; i < dims; ++i) {
    if (shape[i] < 0) return false;
    if (__builtin_mul_overflow(total, static_cast<size_t>(shape[i]), &total)) return false;
  }
  *bytes = total;
  return true;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT void deja_impl_step(uint64_t step) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return;
  int saved_errno = errno;
  Guard guard;
  engine->OnStep(step);
  errno = saved_errno;
}

DEJA_EXPORT void deja_impl_note(const char* text) {
  Engine* engine = text != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return;
  int saved_errno = errno;
  Guard guard;
  engine->OnNote(text);
  errno = saved_errno;
}

// What makes no sense (no name, a negative dimension, an unknown type) is not recorded; the program
// goes on.
DEJA_EXPORT void deja_impl_tensor(const char* name, const void* data, const int64_t* shape,
                                  int dims, int dtype) {
  Engine* engine = name != nullptr && dims >= 0 && (dims == 0 || shape != nullptr) &&
                           static_cast<size_t>(dims) <= deja::format::kMaxTensorDims
                       ? EngineForHook()
                       : nullptr;
  if (engine == nullptr) return;
  SnapshotCall call;
  call.name = name;
  call.data = data;
  call.dtype = static_cast<uint32_t>(dtype);
  size_t element_size = call.dtype == deja::format::kRawBytes ? 0 : ElementSize(call.dtype);
  if (element_size == 0 || !ElementsOf(shape, dims, element_size, &call.bytes)) return;
  if (data == nullptr && call.bytes != 0) return;
  call.shape = {shape, static_cast<size_t>(dims)};
  int saved_errno = errno;
  Guard guard;
  engine->OnSnapshot(call);
  errno = saved_errno;
}

DEJA_EXPORT void deja_impl_state(const char* name, const void* data, size_t bytes) {
  Engine* engine = name != nullptr && (data != nullptr || bytes == 0) ? EngineForHook() : nullptr;
  if (engine == nullptr) return;
  SnapshotCall call;
  call.name = name;
  call.data = data;
  call.bytes = bytes;
  call.dtype = deja::format::kRawBytes;
  call.opaque = true;
  int saved_errno = errno;
  Guard guard;
  engine->OnSnapshot(call);
  errno = saved_errno;
}
