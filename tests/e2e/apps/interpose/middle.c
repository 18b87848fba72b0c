// A library that is linked to NCCL and is opened, not linked, by the program.
#include "use.h"

int middle_main(void) {
  struct nccl_functions nccl = LINKED_NCCL;
  return use_nccl(&nccl);
}
