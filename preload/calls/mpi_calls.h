// MpiCalls: what an engine does with calls of MPI's API.
//
// Any thread, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_MPI_CALLS_H_
#define DEJA_PRELOAD_CALLS_MPI_CALLS_H_

#include "preload/calls/call.h"

namespace deja::preload {

class MpiCalls {
 public:
  // A call that api/mpi.def describes. Sets call.result. MPI_Wtime and MPI_Wtick are inputs.
  virtual void OnMpiCall(Call& call) { call.invoke(call); }
  // A function of MPI's that no table has, in a replay. Need not return.
  virtual void OnUnknownMpiCall(const char* /*name*/, const char* /*because*/) {}

 protected:
  ~MpiCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_MPI_CALLS_H_
