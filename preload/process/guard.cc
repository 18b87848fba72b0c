#include "preload/process/guard.h"

namespace deja::preload {

constinit thread_local uint32_t t_guard_depth __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace deja::preload
