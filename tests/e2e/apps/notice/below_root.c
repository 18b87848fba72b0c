// below_root FOLDER [COMMAND…]: changes its root folder, and says what it sees there or runs a
// command.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (chroot(argv[1]) != 0 || chdir("/") != 0) {
    printf("chroot: %s\n", strerror(errno));
    return 3;
  }
  FILE* inside = fopen("/inside", "r");
  char word[32] = "nothing";
  if (inside != NULL && fscanf(inside, "%31s", word) != 1) return 2;
  printf("inside: %s\n", word);
  fflush(stdout);
  if (argc == 2) return 4;
  execv(argv[2], argv + 2);
  return 5;
}
