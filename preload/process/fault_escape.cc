#include "preload/process/fault_escape.h"

#include <cstdint>

#include "preload/process/guard.h"

namespace deja::preload {

constinit thread_local sigjmp_buf* t_escape __attribute__((tls_model("initial-exec"))) = nullptr;

bool WithoutFault(void (*run)(void*), void* context) {
  sigjmp_buf* const outer = t_escape;
  const uint32_t depth = t_guard_depth;
  sigjmp_buf escape;
  const bool faulted = sigsetjmp(escape, 0) != 0;
  if (!faulted) {
    t_escape = &escape;
    run(context);
  }
  t_escape = outer;
  t_guard_depth = depth;
  return !faulted;
}

}  // namespace deja::preload
