// The files that are mapped into the process as code: executable, shared libraries, vdso.
//
// A fixed table, filled from dl_iterate_phdr and never shrunk: a module that is unloaded keeps its
// number and is no longer found by address; loaded again, it gets a new number. Any thread. Looking
// up is lock-free and async-signal-safe; RefreshModules takes a lock, and does nothing when a
// signal handler calls it on a thread that holds it. Nothing is allocated.
#ifndef DEJA_PRELOAD_STACK_MODULES_H_
#define DEJA_PRELOAD_STACK_MODULES_H_

#include <atomic>
#include <cstdint>

namespace deja::preload {

struct Module {
  uint32_t number = 0;   // from 1
  bool own = false;      // Deja's library itself
  bool lasting = false;  // loaded with the program, so that it stays to the end
  uint8_t build_id_size = 0;
  uint8_t build_id[32] = {};
  uint64_t base = 0;  // load address: pc - base is what symbol tables know
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t eh_frame_hdr = 0;  // 0: none
  std::atomic<bool> loaded{false};
  std::atomic<bool> reported{false};  // for stack.cc
  char path[512] = {};
};

// Brings the table up to date if the loader has loaded or unloaded anything since the last time.
// The check costs a call of dl_iterate_phdr that stops at the first module. False: it may not be up
// to date, because it was being changed below this very call.
bool RefreshModules();

// How many objects the loader has loaded so far. Costs as much as that check.
uint64_t ObjectsLoaded();

// Number of modules so far; numbers are 1 to this.
uint32_t ModuleCount();
Module& ModuleAt(uint32_t number);
// The loaded module that contains `pc`, or null.
const Module* FindModule(uint64_t pc);

// Changes whenever a module was unloaded: whatever is remembered by code address is void then.
uint32_t ModuleGeneration();

// Changes whenever RefreshModules has found the table out of date.
uint32_t ModuleVersion();

// In a child after fork, where a lock of the table may be held by a thread that is not there.
void ResetModulesInChild();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_MODULES_H_
