// What a descriptor leads to, for hooks that are about to use it.
#ifndef DEJA_PRELOAD_HOOKS_DESCRIPTORS_TRACKED_H_
#define DEJA_PRELOAD_HOOKS_DESCRIPTORS_TRACKED_H_

#include "preload/engine/engine.h"
#include "preload/engine/fd_table.h"
#include "preload/process/guard.h"

namespace deja::preload {

// Null: the kernel's alone, or this call is not the program's. In a forked child the engine gets
// ready first. What its parent has opened leads to objects of the parent, whose locks another
// thread may have held at the fork. The engine puts the child's own in their places.
inline FdObject* Tracked(int fd) {
  if (FdTable::Find(fd) == nullptr || InsideDeja()) return nullptr;
  GetEngine();
  return IsEngineSwitchedOff() ? nullptr : FdTable::Find(fd);
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_DESCRIPTORS_TRACKED_H_
