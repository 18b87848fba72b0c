/* What a made-up later release of NCCL has besides the functions of the newest real one. */
#ifndef DEJA_TESTS_FAKES_NEWER_NEWER_NCCL_H_
#define DEJA_TESTS_FAKES_NEWER_NEWER_NCCL_H_

#pragma GCC visibility push(default)
#include <nccl.h>

extern "C" {
/* Sums `count` doubles and multiplies them by `factor` and `more`; wants all kinds of registers,
 * and the stack. */
ncclResult_t ncclScaledReduceLater(const double* send, double* receive, size_t count,
                                   ncclComm_t comm, cudaStream_t stream, double factor, long one,
                                   long two, long three, double more);
/* A version that is none of ncclGetVersion's. */
ncclResult_t ncclGetEditionLater(int* edition);
}
#pragma GCC visibility pop

#endif /* DEJA_TESTS_FAKES_NEWER_NEWER_NCCL_H_ */
