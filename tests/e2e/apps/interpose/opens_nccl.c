// usage: opens_nccl LIBRARY…: NCCL opened by the program, every function looked up on the handle. A
// second library is a second NCCL. A name that is not there must be reported as the C library does
// it.
#include <dlfcn.h>
#include <string.h>

#include "use.h"

int main(int argc, char** argv) {
  int failed = argc < 2;
  for (int i = 1; i < argc; ++i) {
    void* handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
      puts(dlerror());
      return 1;
    }
    struct nccl_functions nccl;
    dlerror();
    FIND_NCCL(nccl, dlsym, handle);
    const char* error = dlerror();
    printf("error after look-ups: %s\n", error == NULL ? "none" : error);
    void* nothing = dlsym(handle, "ncclNoSuchFunction");
    error = dlerror();
    printf("unknown name: %d, %s\n", nothing == NULL,
           error != NULL && strstr(error, "ncclNoSuchFunction") != NULL ? "named in the error"
                                                                        : "no error");
    failed |= use_nccl(&nccl);
  }
  return failed;
}
