// InputCalls: what an engine does with nondeterministic inputs that the C library gives.
//
// Any thread, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_INPUT_CALLS_H_
#define DEJA_PRELOAD_CALLS_INPUT_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace deja::preload {

// A nondeterministic input. `Real` of OnInput fills `out`, `produced`, `result` and `error`.
struct InputCall {
  uint32_t api = 0;          // id in libc.def, or of MPI's clock
  uint64_t key = 0;          // what was asked for: clock id, sysconf name …
  std::span<std::byte> out;  // where the bytes go (the caller's buffer)
  size_t produced = 0;       // how many of them the call wrote
  int64_t result = 0;        // return value
  int error = 0;             // errno, when the call failed
  void (*real)(InputCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
};

class InputCalls {
 public:
  // Fills `out`, `produced`, `result` and `error`.
  virtual void OnInput(InputCall& call) = 0;

 protected:
  ~InputCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_INPUT_CALLS_H_
