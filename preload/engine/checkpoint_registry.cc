#include "preload/engine/checkpoint_registry.h"

#include <new>

namespace deja::preload {

// Never freed; one whose object is unregistered waits for the next one.
struct CheckpointRegistry::Node {
  RegisteredObject object;
  bool used = true;
  Node* next = nullptr;
};

SnapshotCall RegisteredObject::AsSnapshot(const void* bytes_at, size_t size) const {
  SnapshotCall call;
  call.name = name;
  call.data = by_callbacks() ? bytes_at : data;
  call.bytes = by_callbacks() ? size : bytes;
  call.dtype = dtype;
  call.opaque = opaque();
  call.shape = {shape, static_cast<size_t>(dims)};
  return call;
}

CheckpointRegistry& CheckpointRegistry::Get() {
  static constinit CheckpointRegistry registry;
  return registry;
}

CheckpointRegistry::Node* CheckpointRegistry::FindLocked(std::string_view name) {
  for (Node* node = first_; node != nullptr; node = node->next)
    if (node->used && name == node->object.name) return node;
  return nullptr;
}

CheckpointRegistry::Node* CheckpointRegistry::FindUnusedLocked() {
  Node* node = first_;
  while (node != nullptr && node->used) node = node->next;
  return node;
}

void CheckpointRegistry::Register(const RegisteredObject& object) {
  Node* fresh = new (std::nothrow) Node{object};
  lock_.Lock();
  Node* place = FindLocked(object.name);
  if (place == nullptr) place = FindUnusedLocked();
  if (place != nullptr) {
    place->object = object;
    place->used = true;
  } else if (fresh != nullptr) {
    (last_ == nullptr ? first_ : last_->next) = fresh;
    last_ = fresh;
    fresh = nullptr;
  }
  lock_.Unlock();
  delete fresh;
}

void CheckpointRegistry::Unregister(std::string_view name) {
  lock_.Lock();
  if (Node* known = FindLocked(name)) known->used = false;
  lock_.Unlock();
}

bool CheckpointRegistry::At(size_t index, RegisteredObject& out) {
  lock_.Lock();
  Node* node = first_;
  for (; node != nullptr; node = node->next) {
    if (!node->used) continue;
    if (index-- == 0) break;
  }
  if (node != nullptr) out = node->object;
  lock_.Unlock();
  return node != nullptr;
}

bool CheckpointRegistry::empty() {
  RegisteredObject unused;
  return !At(0, unused);
}

}  // namespace deja::preload
