#include <cstdio>

extern "C" int libc_early();

int main() {
  printf("early %d\n", libc_early());
}
