// usage: asks NAME…: does the process have these functions? Nothing is linked, nothing is opened.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    void* by_default = dlsym(RTLD_DEFAULT, argv[i]);
    const char* error = dlerror();
    void* by_handle = dlsym(dlopen(NULL, RTLD_NOW), argv[i]);
    printf("%s: %s, %s, %s\n", argv[i], by_default != NULL ? "there" : "not there",
           by_handle != NULL ? "there" : "not there", error != NULL ? "error" : "no error");
  }
  return 0;
}
