// NCCL bound by the linker.
#include "use.h"

int main(void) {
  struct nccl_functions nccl = LINKED_NCCL;
  return use_nccl(&nccl);
}
