#include "tests/fakes/newer/newer_nccl.h"

extern "C" ncclResult_t pncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                       ncclComm_t, cudaStream_t);

ncclResult_t ncclScaledReduceLater(const double* send, double* receive, size_t count,
                                   ncclComm_t comm, cudaStream_t stream, double factor, long one,
                                   long two, long three, double more) {
  if (one != 1 || two != 2 || three != 3) return ncclInvalidArgument;
  const ncclResult_t result =
      pncclAllReduce(send, receive, count, ncclDouble, ncclSum, comm, stream);
  for (size_t i = 0; result == ncclSuccess && i < count; ++i) receive[i] *= factor * more;
  return result;
}

ncclResult_t ncclGetEditionLater(int* edition) {
  *edition = 7;
  return ncclSuccess;
}
