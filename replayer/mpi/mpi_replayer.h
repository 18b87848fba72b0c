// MpiReplayer: answers calls of MPI from the recording.
//
// One per process, made with the engine, never destroyed. Any thread, within the guard unless its
// interface says otherwise. errno afterwards is the recording's.
#ifndef DEJA_REPLAYER_MPI_MPI_REPLAYER_H_
#define DEJA_REPLAYER_MPI_MPI_REPLAYER_H_

#include "preload/calls/mpi_calls.h"
#include "replayer/core/replayer.h"

namespace deja::replayer {

class MpiReplayer : public preload::MpiCalls {
 public:
  explicit MpiReplayer(Replayer& replayer) : replayer_(replayer) {}

  void OnMpiCall(preload::Call& call) override;
  void OnUnknownMpiCall(const char* name, const char* because) override;

 private:
  Replayer& replayer_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MPI_MPI_REPLAYER_H_
