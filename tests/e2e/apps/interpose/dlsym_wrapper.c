// A program, or another tool's preload library, that wraps dlsym: says which NCCL names were looked
// up through it. Compiled with MAIN it is a program, whose own dlsym comes before everybody's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "use.h"

__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
  if (real == NULL) *(void**)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (strncmp(name, "nccl", 4) == 0) printf("looked up %s\n", name);
  return real(handle, name);
}

#ifdef MAIN
int main(int argc, char** argv) {
  struct nccl_functions nccl;
  void* handle = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  FIND_NCCL(nccl, dlsym, handle);
  return use_nccl(&nccl);
}
#endif
