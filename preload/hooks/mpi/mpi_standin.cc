// What the replay library needs besides the hooks so that a replay reaches no function of MPI's.
// The real library is loaded, since programs are linked to it, but it has not been started, and
// would end the process.
#include <cstdint>

#include "api/table.h"
#include "preload/calls/mpi_calls.h"
#include "preload/engine/engine.h"
#include "preload/process/guard.h"

namespace deja::preload {
namespace {

uint64_t Refuse(const char* name, const char* because) {
  Engine* engine = InsideDeja() ? nullptr : GetEngine();
  if (engine != nullptr) {
    Guard guard;
    engine->mpi->OnUnknownMpiCall(name, because);
  }
  return 0;
}

}  // namespace
}  // namespace deja::preload

extern "C" {
#define DEJA_FORWARD(name, since, because)                        \
  __attribute__((visibility("default"))) uint64_t name(void) {    \
    return deja::preload::Refuse(#name, because);                 \
  }                                                               \
  __attribute__((visibility("default"))) uint64_t P##name(void) { \
    return deja::preload::Refuse(#name, because);                 \
  }
#include "api/tables/mpi_forwarded.def"
#undef DEJA_FORWARD

// For profilers; nothing happens without one.
__attribute__((visibility("default"))) int MPI_Pcontrol(int /*level*/, ...) {
  return 0;
}
__attribute__((visibility("default"))) int PMPI_Pcontrol(int /*level*/, ...) {
  return 0;
}
}
