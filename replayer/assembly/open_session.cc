#include "replayer/assembly/open_session.h"

#include "replayer/clocks/serve_clocks.h"
#include "replayer/fold/fold.h"
#include "replayer/inputs/redacted_names.h"
#include "replayer/meet/collections.h"
#include "replayer/mpi/mpi_world.h"
#include "replayer/nccl/computed_results.h"
#include "replayer/nccl/served_comms.h"

namespace deja::replayer {

Session* OpenSession(const SessionOptions& options) {
  Session* session = Session::Open(options);
  if (session == nullptr) return nullptr;
  // Never destroyed, as the session.
  if (!options.fold.empty()) {
    auto fold = Fold::Open(options.fold);
    if (!fold) {
      Session::ReportFailure(session->report(), fold.error().message);
      return nullptr;
    }
    session->SetPart<ComputedResults>(fold->release());
  }
  auto* comms = new ServedComms(*session);
  session->SetPart(comms);
  session->SetOperations(comms);
  session->AddLateStarter(comms);
  session->SetPart(new ServedMpi(session->plan()));
  session->SetPart(new SessionClocks(session->plan(), options.clocks));
  session->SetPart(new RedactedNames());
  session->SetPart(new Collections(*session));
  return session;
}

}  // namespace deja::replayer
