// Makes files with names that the C library makes up, and prints the names and what is in them.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace {

// The names are deprecated for good reasons, and still asked for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

void Show(const char* what, int fd, const char* path) {
  struct stat info {};
  const bool is_there = stat(path, &info) == 0;
  std::printf("%s %s %s\n", what, path, is_there ? "is there" : "is not there");
  if (fd < 0) return;
  if (write(fd, path, std::strlen(path)) < 0) std::perror("write");
  close(fd);
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  std::printf("  %s, mode %o\n", text == path ? "as written" : "something else",
              info.st_mode & 0777);
}

}  // namespace

// usage: determinism_temporary FOLDER
int main(int argc, char** argv) {
  if (argc < 2 || chdir(argv[1]) != 0) return 2;
  char plain[] = "plain-XXXXXX";
  Show("mkstemp", mkstemp(plain), plain);
  const std::string folder = std::string(argv[1]) + "/whole-XXXXXX";
  char whole[4096];
  std::strcpy(whole, folder.c_str());
  Show("mkostemp", mkostemp(whole, O_CLOEXEC | O_APPEND), whole);
  char suffix[] = "suffix-XXXXXX.txt";
  Show("mkstemps", mkstemps(suffix, 4), suffix);
  char no_pattern[] = "no-pattern";  // is refused
  std::printf("mkstemp without a pattern %d\n", mkstemp(no_pattern));
  char directory[] = "folder-XXXXXX";
  Show("mkdtemp", -1, mkdtemp(directory));
  std::ofstream(std::string(directory) + "/file") << "x";
  char resolved[4096];
  const char* real = realpath((std::string(directory) + "/file").c_str(), resolved);
  std::printf("realpath %s\n", real != nullptr ? real : "none");
  if (chdir(directory) != 0) return 3;
  char here[4096];
  std::printf("getcwd %s\n", getcwd(here, sizeof here));
  char* allocated = getcwd(nullptr, 0);
  std::printf("getcwd, allocated %s\n", allocated);
  std::free(allocated);
  const int fd = open("file", O_RDONLY);
  char link[4096] = {};
  const ssize_t n =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), link, sizeof link - 1);
  std::printf("descriptor %zd %s\n", n, link);
  char short_link[10] = {};
  const ssize_t m =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), short_link, sizeof short_link - 1);
  std::printf("descriptor, cut off %zd %s\n", m, short_link);
  char* allocated_path = realpath("..", nullptr);
  std::printf("above %s\n", allocated_path);
  std::free(allocated_path);
}
