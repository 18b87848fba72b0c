// NCCL by its second names, as other tools call it, and a function that Deja does not record.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "use.h"

int main(void) {
  struct nccl_functions nccl = {pncclGetVersion, pncclGetUniqueId, pncclCommInitRank,
                                pncclAllReduce};
  use_nccl(&nccl);
  ncclResult_t (*create)(ncclComm_t, const void*, void*);
  *(void**)&create = dlsym(RTLD_DEFAULT, "ncclDevCommCreate");
  if (create != NULL) printf("ncclDevCommCreate: %d\n", create(NULL, NULL, NULL));
  return 0;
}
