// Lists of nodes that are linked through their own `next`, and pools that such nodes come from.
//
// NodePool gives out nodes and never gives memory back; NodeList is a FIFO of them that belongs to
// its holder. NodePool: any thread. NodeList: not synchronised.
#ifndef DEJA_RECORDER_EVENTS_NODE_LIST_H_
#define DEJA_RECORDER_EVENTS_NODE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "common/runtime/spin_lock.h"
#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

template <typename Node>
class NodeList {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  void Push(Node* node) {
    node->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = node;
    last_ = node;
  }
  Node* Pop() {
    Node* node = first_;
    if (node != nullptr) first_ = node->next;
    return node;
  }
  [[nodiscard]] Node* first() const { return first_; }
  [[nodiscard]] uint32_t size() const {
    uint32_t count = 0;
    for (Node* node = first_; node != nullptr; node = node->next) ++count;
    return count;
  }
  // Takes everything out of the list.
  NodeList Take() {
    NodeList taken = *this;
    first_ = nullptr;
    return taken;
  }

 private:
  Node* first_ = nullptr;
  Node* last_ = nullptr;
};

template <typename Node>
class NodePool {
 public:
  // Null when there is no memory.
  Node* Get() {
    Hold hold(lock_);
    if (free_.empty()) {
      constexpr size_t kCount = 256;
      auto* nodes = static_cast<Node*>(MapZeroed(kCount * sizeof(Node)));
      if (nodes == nullptr) return nullptr;
      for (size_t i = 0; i < kCount; ++i) free_.Push(new (&nodes[i]) Node);
    }
    return free_.Pop();
  }
  void Put(Node* node) {
    Hold hold(lock_);
    free_.Push(node);
  }

 private:
  SpinLock lock_;
  NodeList<Node> free_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_NODE_LIST_H_
