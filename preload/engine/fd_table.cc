#include "preload/engine/fd_table.h"

#include "preload/engine/engine.h"

namespace deja::preload {

constinit std::atomic<FdObject*> FdTable::slots_[kSize] = {};

void FdTable::Set(int fd, FdObject* object) {
  if (static_cast<unsigned>(fd) >= kSize) return;
  std::atomic<FdObject*>& slot = slots_[fd];
  if (object == nullptr && slot.load(std::memory_order_relaxed) == nullptr) return;
  if (IsBorrowedMemory()) return;
  if (object != nullptr) object->descriptors_.fetch_add(1, std::memory_order_relaxed);
  FdObject* before = slot.exchange(object, std::memory_order_acq_rel);
  if (before != nullptr && before->descriptors_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    before->OnUnused(fd);
}

void FdTable::Copy(int from, int to) {
  if (from != to) Set(to, Find(from));
}

}  // namespace deja::preload
