// A library that uses NCCL before main and after main's end.
#include "use.h"

static struct nccl_functions nccl = LINKED_NCCL;

__attribute__((constructor(101))) static void before(void) {
  puts("before main");
  use_nccl(&nccl);
}

__attribute__((destructor(101))) static void after(void) {
  puts("after main");
  use_nccl(&nccl);
}

int early_is_linked = 1;
