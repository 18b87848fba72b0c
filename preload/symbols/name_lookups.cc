#include "preload/symbols/name_lookups.h"

namespace deja::preload {

constinit thread_local bool t_ask_nobody __attribute__((tls_model("initial-exec"))) = false;

}  // namespace deja::preload
