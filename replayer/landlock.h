// Landlock: the kernel's own fence around a replayed program.
//
// After Restrict(), this process and its children can read everything but write, create and remove
// only beneath `writable`, to harmless devices and to GPUs, cannot connect or bind TCP sockets, and
// cannot signal processes outside. What the running kernel does not know is left out; nothing can
// be undone. Call while there is one thread.
#ifndef DEJA_REPLAYER_LANDLOCK_H_
#define DEJA_REPLAYER_LANDLOCK_H_

namespace deja::replayer {

struct LandlockState {
  int abi = 0;  // 0: not there, or refused
  bool files = false;
  bool tcp = false;
  bool signals = false;
};

// What stays open in spite of it.
struct FenceOptions {
  bool allow_writes = false;
  bool allow_network = false;
  const char* also_writable = nullptr;  // a folder; null: none
  const char* meeting = nullptr;        // another one
  // The process has inherited the rank's fence: one of its own would part it from the others' Unix
  // sockets and signals.
  bool inside = false;
  const char* devices = "/dev";  // where those of GPUs are
};

LandlockState Restrict(const char* writable, const FenceOptions& options = {});

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_LANDLOCK_H_
