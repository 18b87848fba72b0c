// Makes an io_uring and says whether the kernel has one.
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
  struct io_uring_params params;
  memset(&params, 0, sizeof params);
  const long ring = syscall(SYS_io_uring_setup, 4, &params);
  if (ring < 0) {
    printf("no ring: %s\n", strerror(errno));
    return 3;
  }
  printf("a ring of %u entries\n", params.sq_entries);
  return close((int)ring);
}
