// Call: one call of a function that a table of api/ describes, with its arguments as words.
//
// On the caller's stack; of the thread that makes the call.
#ifndef DEJA_PRELOAD_CALLS_CALL_H_
#define DEJA_PRELOAD_CALLS_CALL_H_

#include <cstdint>

#include "api/roles.h"

namespace deja::preload {

// One call of a table-described function. Lives on the caller's stack.
struct Call {
  const api::ApiInfo* info = nullptr;
  // Arguments in the table's order, widened to 64 bits. Pointers as addresses. A ncclUniqueId that
  // is passed by value is a pointer to the caller's copy.
  uint64_t args[api::kMaxArgs] = {};
  // The return value: ncclResult_t, or a const char*.
  uint64_t result = 0;
  // Makes the real call with `args`, sets `result` and errno. Runs with the in-library guard held.
  // If no real library is there it sets ncclSystemError.
  void (*invoke)(Call& call) = nullptr;

  template <typename T>
  [[nodiscard]] T Arg(int i) const {
    return (T)(args[i]);
  }  // NOLINT: words of an ABI
  // The argument with that role; 0 if the function has none.
  [[nodiscard]] uint64_t ArgOf(api::Role role) const {
    int i = info->Find(role);
    return i < 0 ? 0 : args[i];
  }
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_CALL_H_
