#include "replayer/mpi/mpi_replayer.h"

#include "common/runtime/errno_keeper.h"
#include "preload/calls/mpi_call.h"
#include "replayer/mpi/mpi_serve.h"

namespace deja::replayer {

using preload::Call;

void MpiReplayer::OnMpiCall(Call& call) {
  // In a child of the rank there is no job to be part of.
  if (replayer_.session == nullptr) {
    call.result = static_cast<uint64_t>(preload::TheMpiAbi().error_other);
    return;
  }
  const ErrnoKeeper keep;
  ServeMpi(*replayer_.session, replayer_.session->Thread(), call);
}

void MpiReplayer::OnUnknownMpiCall(const char* name, const char* because) {
  if (replayer_.session != nullptr)
    RefuseMpi(*replayer_.session, replayer_.session->Thread(), name, because);
}

}  // namespace deja::replayer
