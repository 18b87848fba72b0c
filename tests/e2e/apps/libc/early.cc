// A library whose constructor and destructor make calls that are hooked, before and after all
// others.
#include <unistd.h>

#include <cstdio>
#include <ctime>

namespace {

__attribute__((constructor)) void Begin() {
  if (time(nullptr) == 0 || getpid() <= 0) printf("constructor failed\n");
}

__attribute__((destructor)) void End() {
  if (time(nullptr) == 0 || access("/", F_OK) != 0) printf("destructor failed\n");
}

}  // namespace

extern "C" int libc_early() {
  return 1;
}
