// CheckpointRegistry: what the program has registered through include/deja.h, for recorder and
// replayer alike.
//
// One per process. Any thread; nothing is held while the caller looks at an object, whose memory is
// the program's and valid as long as it is registered. A name means the object that was
// registered under it last. Registering allocates; nothing else does.
#ifndef DEJA_PRELOAD_ENGINE_CHECKPOINT_REGISTRY_H_
#define DEJA_PRELOAD_ENGINE_CHECKPOINT_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/runtime/spin_lock.h"
#include "format/wire/messages.h"
#include "preload/calls/step_calls.h"

namespace deja::preload {

struct RegisteredObject {
  static constexpr size_t kMaxName = 255;
  using Write = void (*)(void* sink, const void* data, size_t bytes);
  using Save = void (*)(void* user, Write write, void* sink);
  using Load = int (*)(void* user, const void* data, size_t bytes);

  char name[kMaxName + 1] = {};
  void* data = nullptr;  // null: by callbacks
  size_t bytes = 0;
  uint32_t dtype = format::kRawBytes;
  int64_t shape[format::kMaxTensorDims] = {};
  int dims = 0;
  Save save = nullptr;
  Load load = nullptr;
  void* user = nullptr;

  [[nodiscard]] bool by_callbacks() const { return save != nullptr; }
  [[nodiscard]] bool opaque() const { return dtype == format::kRawBytes; }
  // The object as a snapshot; `bytes_at`, `size`: what its callback has saved.
  [[nodiscard]] SnapshotCall AsSnapshot(const void* bytes_at, size_t size) const;
};

class CheckpointRegistry {
 public:
  // The process's registry; made on the first call.
  static CheckpointRegistry& Get();

  // Adds an object, or replaces the one of that name. Names are copied, memory is borrowed. Any
  // thread.
  void Register(const RegisteredObject& object);
  void Unregister(std::string_view name);
  // Copies the `index`-th object. False: there are fewer.
  bool At(size_t index, RegisteredObject& out);
  [[nodiscard]] bool empty();

 private:
  struct Node;
  Node* FindLocked(std::string_view name);
  Node* FindUnusedLocked();

  SpinLock lock_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_CHECKPOINT_REGISTRY_H_
