// Linked without any NCCL: only Deja's library defines the functions.
#include <nccl.h>
#include <stdio.h>

int main(void) {
  ncclUniqueId id = {{0}};
  ncclComm_t comm = NULL;
  printf("%d %d\n", ncclGetUniqueId(&id), ncclCommInitRank(&comm, 1, id, 0));
  printf("%s\n", ncclGetErrorString(ncclSuccess));
  return 0;
}
