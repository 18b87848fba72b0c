// usage: files DIR: makes, reads, renames and removes files there, whose names begin with
// "watched".
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

int g_failed = 0;

void Check(bool good, const char* what) {
  if (!good) {
    printf("failed: %s\n", what);
    g_failed = 1;
  }
}

bool Write(int fd, const char* text) {
  bool good = fd >= 0 && write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  close(fd);
  return good;
}

std::string Read(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  return text;
}

}  // namespace

int main(int, char** argv) {
  std::string d = std::string(argv[1]) + "/";
  std::string a = d + "watched-a";
  std::string b = d + "watched-b";
  unlink(a.c_str());
  Check(Write(open(a.c_str(), O_CREAT | O_WRONLY, 0640), "one"), "open");
  struct stat st;
  Check(stat(a.c_str(), &st) == 0 && st.st_size == 3 && (st.st_mode & 0777) == 0640, "stat");
  Check(Read(a) == "one", "read back");
  Check(Write(open(a.c_str(), O_WRONLY | O_APPEND), "two"), "append");
  Check(Read(a) == "onetwo", "read appended");
  FILE* f = fopen(b.c_str(), "w");
  Check(f != nullptr && fputs("stream", f) >= 0 && fclose(f) == 0, "fopen");
  f = fopen(b.c_str(), "r+");
  f = f != nullptr ? freopen(a.c_str(), "r", f) : nullptr;
  char text[16] = {};
  Check(f != nullptr && fgets(text, sizeof text, f) != nullptr && strcmp(text, "onetwo") == 0,
        "freopen");
  if (f != nullptr) fclose(f);
  Check(rename(b.c_str(), a.c_str()) == 0 && Read(a) == "stream", "rename");
  Check(access(b.c_str(), F_OK) != 0 && access(a.c_str(), R_OK) == 0, "access");
  Check(truncate(a.c_str(), 2) == 0 && Read(a) == "st", "truncate");
  Check(chmod(a.c_str(), 0600) == 0 && stat(a.c_str(), &st) == 0 && (st.st_mode & 0777) == 0600,
        "chmod");
  std::string made = d + "watched-XXXXXX";
  Check(Write(mkstemp(made.data()), "made") && Read(made) == "made", "mkstemp");
  Check(made.find("XXXXXX") == std::string::npos && made.rfind(d, 0) == 0, "name of mkstemp");
  std::string suffixed = d + "watched-XXXXXX.txt";
  Check(Write(mkostemps(suffixed.data(), 4, O_APPEND), "s") && Read(suffixed) == "s", "mkostemps");
  Check(unlink(made.c_str()) == 0 && unlink(suffixed.c_str()) == 0, "unlink");
  Check(unlink(made.c_str()) == -1 && errno == ENOENT, "unlink twice");
  std::string folder = d + "watched-dir";
  Check(mkdir(folder.c_str(), 0755) == 0, "mkdir");
  DIR* dir = opendir(folder.c_str());
  Check(dir != nullptr, "opendir");
  if (dir != nullptr) closedir(dir);
  Check(rmdir(folder.c_str()) == 0, "rmdir");
  std::string link = d + "watched-link";
  Check(symlink("text", link.c_str()) == 0 && readlink(link.c_str(), text, sizeof text) == 4,
        "symlink");
  Check(remove(link.c_str()) == 0 && lstat(link.c_str(), &st) != 0, "remove");
  std::filesystem::path copy = d + "watched-copy";
  std::error_code error;
  std::filesystem::copy_file(a, copy, error);
  Check(!error && std::filesystem::file_size(copy, error) == 2, "copy_file");
  std::filesystem::remove(copy, error);
  Check(!error && open((d + "watched-none").c_str(), O_RDONLY) == -1 && errno == ENOENT, "missing");
  int here = open(argv[1], O_RDONLY | O_DIRECTORY);
  Check(here >= 0 && openat(here, "none", O_RDONLY) == -1 && close(here) == 0, "openat");
  Check(fopen("/nonexistent/x", "w") == nullptr, "no folder");
  printf("done %d\n", g_failed);
  return g_failed;
}
