// usage: opens_middle LIBRARY: a plug-in brings NCCL with it, in a scope of its own.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  void* middle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (middle == NULL) {
    puts(dlerror());
    return 1;
  }
  int (*middle_main)(void);
  *(void**)&middle_main = dlsym(middle, "middle_main");
  return middle_main();
}
