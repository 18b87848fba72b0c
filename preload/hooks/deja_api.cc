// The entry points of include/deja.h.
#include <algorithm>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "digest/digest.h"
#include "format/wire/messages.h"
#include "preload/calls/step_calls.h"
#include "preload/calls/update_call.h"
#include "preload/engine/checkpoint_registry.h"
#include "preload/engine/engine.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/process/guard.h"

namespace deja::preload {
namespace {

// Saturates: a shape whose product does not fit is no memory.
bool ElementsOf(const int64_t* shape, int dims, size_t element_size, size_t* bytes) {
  size_t total = element_size;
  for (int i = 0; i < dims; ++i) {
    if (shape[i] < 0) return false;
    if (__builtin_mul_overflow(total, static_cast<size_t>(shape[i]), &total)) return false;
  }
  *bytes = total;
  return true;
}

// What makes no sense (no name, a negative dimension, an unknown type) is left alone; the program
// goes on.
bool IsTensor(const void* data, const int64_t* shape, int dims, uint32_t dtype, size_t* bytes) {
  if (dims < 0 || static_cast<size_t>(dims) > deja::format::kMaxTensorDims) return false;
  if (dims != 0 && shape == nullptr) return false;
  const size_t element_size = dtype == deja::format::kRawBytes ? 0 : digest::ElementSize(dtype);
  if (element_size == 0 || !ElementsOf(shape, dims, element_size, bytes)) return false;
  return data != nullptr || *bytes == 0;
}

bool SetName(const char* name, RegisteredObject& object) {
  const size_t length = name == nullptr ? RegisteredObject::kMaxName + 1 : std::strlen(name);
  if (length > RegisteredObject::kMaxName) return false;
  std::memcpy(object.name, name, length + 1);
  return true;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT uint64_t deja_impl_step(uint64_t step) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return step;
  const deja::ErrnoKeeper keep;
  const uint64_t next = engine->steps->OnStep(step);
  return next;
}

DEJA_EXPORT void deja_impl_checkpoint() {
  if (Engine* engine = EngineForHook()) engine->steps->OnCheckpointWanted();
}

DEJA_EXPORT void deja_impl_register_tensor(const char* name, void* data, const int64_t* shape,
                                           int dims, int dtype) {
  RegisteredObject object;
  object.dtype = static_cast<uint32_t>(dtype);
  if (!SetName(name, object) || !IsTensor(data, shape, dims, object.dtype, &object.bytes)) return;
  object.data = data;
  object.dims = dims;
  std::copy_n(shape, dims, object.shape);
  CheckpointRegistry::Get().Register(object);
}

DEJA_EXPORT void deja_impl_register_state(const char* name, void* data, size_t bytes) {
  RegisteredObject object;
  if (!SetName(name, object) || data == nullptr) return;
  object.data = data;
  object.bytes = bytes;
  CheckpointRegistry::Get().Register(object);
}

DEJA_EXPORT void deja_impl_register_callbacks(const char* name, RegisteredObject::Save save,
                                              RegisteredObject::Load load, void* user) {
  RegisteredObject object;
  if (!SetName(name, object) || save == nullptr || load == nullptr) return;
  object.save = save;
  object.load = load;
  object.user = user;
  CheckpointRegistry::Get().Register(object);
}

DEJA_EXPORT void deja_impl_unregister(const char* name) {
  if (name != nullptr) CheckpointRegistry::Get().Unregister(name);
}

DEJA_EXPORT void deja_impl_note(const char* text) {
  Engine* engine = text != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return;
  const deja::ErrnoKeeper keep;
  Guard guard;
  engine->steps->OnNote(text);
}

DEJA_EXPORT void deja_impl_tensor(const char* name, const void* data, const int64_t* shape,
                                  int dims, int dtype) {
  SnapshotCall call;
  call.dtype = static_cast<uint32_t>(dtype);
  if (name == nullptr || !IsTensor(data, shape, dims, call.dtype, &call.bytes)) return;
  Engine* engine = EngineForHook();
  if (engine == nullptr) return;
  call.name = name;
  call.data = data;
  call.shape = {shape, static_cast<size_t>(dims)};
  const deja::ErrnoKeeper keep;
  Guard guard;
  engine->steps->OnSnapshot(call);
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
  const deja::ErrnoKeeper keep;
  Guard guard;
  engine->steps->OnSnapshot(call);
}

// For Deja's side of Python, which compares tensors by it. 0: all bytes are zero.
DEJA_EXPORT uint64_t deja_impl_digest(const void* data, size_t bytes) {
  const auto* first = static_cast<const char*>(data);
  if (data == nullptr || bytes == 0) return 0;
  if (*first == 0 && std::memcmp(first, first + 1, bytes - 1) == 0) return 0;
  const uint64_t hash =
      deja::digest::HashBytes({static_cast<const std::byte*>(data), bytes}).Prefix();
  return std::max<uint64_t>(hash, 1);
}

DEJA_EXPORT void deja_impl_update(const UpdateCall* call) {
  Engine* engine = call != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return;
  const deja::ErrnoKeeper keep;
  const Guard guard;
  engine->steps->OnUpdate(DescribeUpdate(*call));
}
