// NcclCalls and CurandCalls: what an engine does with calls of NCCL's API and of cuRAND's host API.
//
// Any thread, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_NCCL_CALLS_H_
#define DEJA_PRELOAD_CALLS_NCCL_CALLS_H_

#include "preload/calls/call.h"

namespace deja::preload {

// Each call of NCCL's API that api/nccl.def describes.
class NcclCalls {
 public:
  // Sets call.result.
  virtual void OnNcclCall(Call& call) = 0;

 protected:
  ~NcclCalls() = default;
};

// Each call of the host API of cuRAND that api/curand.def describes.
class CurandCalls {
 public:
  // Sets call.result.
  virtual void OnCurandCall(Call& call) { call.invoke(call); }

 protected:
  ~CurandCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_NCCL_CALLS_H_
