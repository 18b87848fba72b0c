// Another tool's preload library: wraps one function and calls on. With RTLD_NEXT, or, compiled
// with BY_HANDLE, to the library that it opened when it was loaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

typedef ncclResult_t (*all_reduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t);

#ifdef BY_HANDLE
static all_reduce next;

__attribute__((constructor)) static void find(void) {
  const char* path = getenv("INTERPOSE_NCCL");
  void* handle = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (handle != NULL) *(void**)&next = dlsym(handle, "ncclAllReduce");
}
#endif

__attribute__((visibility("default"))) ncclResult_t ncclAllReduce(const void* sendbuff,
                                                                  void* recvbuff, size_t count,
                                                                  ncclDataType_t datatype,
                                                                  ncclRedOp_t op, ncclComm_t comm,
                                                                  cudaStream_t stream) {
#ifndef BY_HANDLE
  all_reduce next;
  *(void**)&next = dlsym(RTLD_NEXT, "ncclAllReduce");
#endif
  puts("wrapped ncclAllReduce");
  return next(sendbuff, recvbuff, count, datatype, op, comm, stream);
}
