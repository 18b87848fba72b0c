/* The NCCL calls that the programs of this folder make, through whatever pointers they have found.
 */
#ifndef DEJA_TESTS_E2E_APPS_INTERPOSE_USE_H_
#define DEJA_TESTS_E2E_APPS_INTERPOSE_USE_H_

#include <nccl.h>
#include <stdio.h>

struct nccl_functions {
  ncclResult_t (*get_version)(int*);
  ncclResult_t (*get_unique_id)(ncclUniqueId*);
  ncclResult_t (*comm_init_rank)(ncclComm_t*, int, ncclUniqueId, int);
  ncclResult_t (*all_reduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                             cudaStream_t);
};

static inline int use_nccl(const struct nccl_functions* nccl) {
  ncclUniqueId id = {{1, 2, 3}};
  ncclComm_t comm = NULL;
  float in = 1;
  float out = 0;
  int version = 0;
  int failed = nccl->get_version(&version);
  failed |= nccl->get_unique_id(&id);
  failed |= nccl->comm_init_rank(&comm, 2, id, 1);
  failed |= nccl->all_reduce(&in, &out, 1, ncclFloat, ncclSum, comm, NULL);
  printf("used NCCL: %d\n", failed);
  fflush(stdout);
  return failed;
}

/* A program compiled with `lookup`, a function like dlsym, as its only way to NCCL. */
#define FIND_NCCL(functions, lookup, scope)                                   \
  do {                                                                        \
    *(void**)&(functions).get_version = lookup(scope, "ncclGetVersion");      \
    *(void**)&(functions).get_unique_id = lookup(scope, "ncclGetUniqueId");   \
    *(void**)&(functions).comm_init_rank = lookup(scope, "ncclCommInitRank"); \
    *(void**)&(functions).all_reduce = lookup(scope, "ncclAllReduce");        \
  } while (0)

#define LINKED_NCCL \
  { ncclGetVersion, ncclGetUniqueId, ncclCommInitRank, ncclAllReduce }

#endif /* DEJA_TESTS_E2E_APPS_INTERPOSE_USE_H_ */
