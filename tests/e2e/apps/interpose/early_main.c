// Linked to a library that uses NCCL in its constructor and destructor; uses it in an exit handler
// too.
#include <stdlib.h>

#include "use.h"

extern int early_is_linked;

static void at_exit(void) {
  struct nccl_functions nccl = LINKED_NCCL;
  puts("exit handler");
  use_nccl(&nccl);
}

int main(void) {
  atexit(at_exit);
  puts("main");
  return early_is_linked - 1;
}
