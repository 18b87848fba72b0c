// What the files that define the exported functions share.
//
// Each function has a strong name pncclX and a weak alias ncclX, as in NCCL. Checks return what
// NCCL returns and leave a message for ncclGetLastError.
#ifndef DEJA_LOOPBACK_API_API_H_
#define DEJA_LOOPBACK_API_API_H_

#include "compat/nccl.h"
#include "loopback/ranks/comm.h"

// DEJA_NCCL_API(ncclResult_t, ncclX, (int parameter)) { body }
#define DEJA_NCCL_API(result, name, params)                                                     \
  extern "C" __attribute__((visibility("default"))) result p##name params;                      \
  extern "C" __attribute__((weak, alias("p" #name), visibility("default"))) result name params; \
  result p##name params

#define DEJA_NCCL_CHECK(call)                             \
  do {                                                    \
    ncclResult_t deja_result_ = (call);                   \
    if (deja_result_ != ncclSuccess) return deja_result_; \
  } while (0)

namespace deja::loopback {

ncclResult_t CheckPointer(const void* pointer, const char* function, const char* argument);
// `comm` is a live communicator.
ncclResult_t CheckComm(const ncclComm* comm, const char* function);
// It is also ready: made, whole, and nothing of it in progress.
ncclResult_t CheckReady(const ncclComm* comm, const char* function);
// It may also communicate: neither revoked nor finalized nor suspended.
ncclResult_t CheckUsable(const ncclComm* comm, const char* function);

// The state that ncclCommGetAsyncError reports.
ncclResult_t AsyncState(const ncclComm* comm);

// `op` of `comm`, made concrete.
ncclResult_t FindReduction(ncclComm* comm, ncclRedOp_t op, ncclDataType_t dtype,
                           const char* function, Reduction* reduction);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_API_API_H_
