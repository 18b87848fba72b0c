// Files by every name that the C library has for it. Its argument is a folder with a file
// `data.txt`, which it only reads; the working directory is where it writes.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <cstring>

#include "tests/e2e/apps/libc/every_call.h"

namespace {

std::string Text(const char* bytes, long long count) {
  return count < 0 ? "error" : std::string(bytes, static_cast<size_t>(count));
}

void Reads(const std::string& data) {
  char b[16] = {};
  int fd = open64(data.c_str(), O_RDONLY);
  Show("open64", fd >= 0);
  Show("__read_chk",
       Text(b, Old<ssize_t(int, void*, size_t, size_t)>("__read_chk")(fd, b, 4, sizeof b)));
  Show("pread64", Text(b, pread64(fd, b, 4, 8)));
  Show("__pread_chk", Text(b, Old<ssize_t(int, void*, size_t, off_t, size_t)>("__pread_chk")(
                                  fd, b, 4, 2, sizeof b)));
  Show("__pread64_chk", Text(b, Old<ssize_t(int, void*, size_t, off_t, size_t)>("__pread64_chk")(
                                    fd, b, 4, 3, sizeof b)));
  iovec pieces[2] = {{b, 2}, {b + 2, 3}};
  Show("preadv64", Text(b, preadv64(fd, pieces, 2, 5)));
  Show("preadv2", Text(b, preadv2(fd, pieces, 2, 6, 0)));
  Show("preadv64v2", Text(b, preadv64v2(fd, pieces, 2, 7, 0)));
  Show("lseek64", lseek64(fd, 10, SEEK_SET));
  void* mapped = mmap64(nullptr, 16, PROT_READ, MAP_PRIVATE, fd, 0);
  Show("mmap64", Text(static_cast<char*>(mapped), 8));
  munmap(mapped, 16);
  int copy = dup3(fd, fd + 20, O_CLOEXEC);
  Show("dup3", read(copy, b, 3) == 3 ? Text(b, 3) : "error");
  Show("fcntl64", Old<int(int, int, ...)>("fcntl64")(copy, F_GETFD));
  close(copy);
  close(fd);
  FILE* file = fopen64(data.c_str(), "r");
  Show("fopen64", file != nullptr);
  Show("__fread_chk",
       Text(b, static_cast<long long>(Old<size_t(void*, size_t, size_t, size_t, FILE*)>(
                   "__fread_chk")(b, sizeof b, 1, 5, file))));
  Show("fread_unlocked", Text(b, static_cast<long long>(fread_unlocked(b, 1, 4, file))));
  Show("_IO_getc", Old<int(FILE*)>("_IO_getc")(file));
  file = freopen64(data.c_str(), "r", file);
  Show("freopen64", file == nullptr ? -1 : fgetc(file));
  fclose(file);
  int folder = open(data.substr(0, data.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY);
  fd = openat64(folder, "data.txt", O_RDONLY);
  Show("openat64", read(fd, b, 2) == 2 ? Text(b, 2) : "error");
  close(fd);
  struct Open {
    const char* name;
    int fd;
  } const opens[] = {
      {"__open_2", Old<int(const char*, int)>("__open_2")(data.c_str(), O_RDONLY)},
      {"__open64_2", Old<int(const char*, int)>("__open64_2")(data.c_str(), O_RDONLY)},
      {"__openat_2", Old<int(int, const char*, int)>("__openat_2")(folder, "data.txt", O_RDONLY)},
      {"__openat64_2",
       Old<int(int, const char*, int)>("__openat64_2")(folder, "data.txt", O_RDONLY)},
  };
  for (const Open& one : opens) {
    Show(one.name, read(one.fd, b, 6) == 6 ? Text(b, 6) : "error");
    close(one.fd);
  }
  close(folder);
}

void Looks(const std::string& data, const std::string& folder) {
  struct stat64 info64 {};
  struct stat info {};
  struct statx wide {};
  Show("stat64", stat64(data.c_str(), &info64) == 0 ? static_cast<long long>(info64.st_size) : -1);
  Show("lstat64",
       lstat64(data.c_str(), &info64) == 0 ? static_cast<long long>(info64.st_size) : -1);
  Show("fstatat",
       fstatat(AT_FDCWD, data.c_str(), &info, 0) == 0 ? static_cast<long long>(info.st_size) : -1);
  Show("fstatat64", fstatat64(AT_FDCWD, data.c_str(), &info64, 0) == 0
                        ? static_cast<long long>(info64.st_size)
                        : -1);
  Show("statx", statx(AT_FDCWD, data.c_str(), 0, STATX_SIZE, &wide) == 0
                    ? static_cast<long long>(wide.stx_size)
                    : -1);
  using Xstat = int(int, const char*, void*);
  using Xstatat = int(int, int, const char*, void*, int);
  for (const char* name : {"__xstat", "__xstat64", "__lxstat", "__lxstat64"})
    Show(name, Old<Xstat>(name)(1, data.c_str(), &info64) == 0
                   ? static_cast<long long>(info64.st_size)
                   : -1);
  for (const char* name : {"__fxstatat", "__fxstatat64"})
    Show(name, Old<Xstatat>(name)(1, AT_FDCWD, data.c_str(), &info64, 0) == 0
                   ? static_cast<long long>(info64.st_size)
                   : -1);
  Show("faccessat", faccessat(AT_FDCWD, data.c_str(), R_OK, 0));
  Show("euidaccess", euidaccess(data.c_str(), R_OK));
  Show("eaccess", eaccess((folder + "/missing").c_str(), R_OK));
  struct statfs fs {};
  struct statfs64 fs64 {};
  struct statvfs vfs {};
  struct statvfs64 vfs64 {};
  Show("statfs", statfs(folder.c_str(), &fs) == 0 && fs.f_bsize > 0);
  Show("statfs64", statfs64(folder.c_str(), &fs64) == 0 && fs64.f_bsize > 0);
  Show("statvfs", statvfs(folder.c_str(), &vfs) == 0 && vfs.f_bsize > 0);
  Show("statvfs64", statvfs64(folder.c_str(), &vfs64) == 0 && vfs64.f_bsize > 0);
  char* real = canonicalize_file_name(data.c_str());
  Show("canonicalize_file_name", real != nullptr && data == real);
  free(real);
  char path[4096];
  Show("__realpath_chk", Old<char*(const char*, char*, size_t)>("__realpath_chk")(
                             data.c_str(), path, sizeof path) == path);
  char* here = get_current_dir_name();
  Show("get_current_dir_name", here != nullptr && here[0] == '/');
  Show("__getcwd_chk", Old<char*(char*, size_t, size_t)>("__getcwd_chk")(path, sizeof path,
                                                                         sizeof path) != nullptr &&
                           std::string(path) == here);
  Show("getwd", Old<char*(char*)>("getwd")(path) != nullptr && std::string(path) == here);
  free(here);
}

void Lists(const std::string& folder) {
  DIR* listing = fdopendir(open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  Show("fdopendir", listing != nullptr);
  int entries = 0;
  long second = 0;
  while (dirent64* entry = readdir64(listing)) {
    if (++entries == 1) second = telldir(listing);
    Show("readdir64", entry->d_name);
  }
  seekdir(listing, second);
  int left = 0;
  while (readdir64(listing) != nullptr) ++left;
  Show("telldir, seekdir", entries - left);
  rewinddir(listing);
  left = 0;
  while (readdir64(listing) != nullptr) ++left;
  Show("rewinddir", entries - left);
  closedir(listing);
  dirent64** names = nullptr;
  int count = scandir64(folder.c_str(), &names, nullptr, alphasort64);
  Show("scandir64", count > 0 ? names[count - 1]->d_name : "error");
  for (int i = 0; i < count; ++i) free(names[i]);
  free(names);
}

void Changes() {
  int fd = creat("made", 0600);
  Show("creat", write(fd, "0123456789", 10));
  close(fd);
  fd = creat64("made64", 0600);
  iovec pieces[2] = {{const_cast<char*>("abc"), 3}, {const_cast<char*>("de"), 2}};
  Show("writev", writev(fd, pieces, 2));
  close(fd);
  Show("renameat", renameat(AT_FDCWD, "made64", AT_FDCWD, "moved"));
  Show("renameat2", renameat2(AT_FDCWD, "moved", AT_FDCWD, "made", RENAME_EXCHANGE));
  Show("truncate64", truncate64("moved", 7));
  Show("mkdirat", mkdirat(AT_FDCWD, "folder", 0700));
  Show("linkat", linkat(AT_FDCWD, "moved", AT_FDCWD, "folder/link", 0));
  Show("symlinkat", symlinkat("link", AT_FDCWD, "folder/symbolic"));
  char target[32] = {};
  Show("readlinkat", Text(target, readlinkat(AT_FDCWD, "folder/symbolic", target, sizeof target)));
  Show("__readlink_chk",
       Text(target, Old<ssize_t(const char*, char*, size_t, size_t)>("__readlink_chk")(
                        "folder/symbolic", target, sizeof target, sizeof target)));
  Show("__readlinkat_chk",
       Text(target, Old<ssize_t(int, const char*, char*, size_t, size_t)>("__readlinkat_chk")(
                        AT_FDCWD, "folder/symbolic", target, sizeof target, sizeof target)));
  Show("lchown", lchown("folder/symbolic", getuid(), getgid()));
  Show("fchownat", fchownat(AT_FDCWD, "moved", getuid(), getgid(), 0));
  const timeval times[2] = {{1000, 0}, {2000, 0}};
  struct stat info {};
  Show("utimes", utimes("moved", times) == 0 && stat("moved", &info) == 0
                     ? static_cast<long long>(info.st_mtime)
                     : -1);
  fd = open("moved", O_RDWR);
  const timeval later[2] = {{1000, 0}, {3000, 0}};
  Show("futimes", futimes(fd, later) == 0 && fstat(fd, &info) == 0
                      ? static_cast<long long>(info.st_mtime)
                      : -1);
  Show("futimesat", futimesat(AT_FDCWD, "moved", times) == 0 && stat("moved", &info) == 0
                        ? static_cast<long long>(info.st_mtime)
                        : -1);
  Show("lutimes", lutimes("folder/symbolic", later) == 0 && lstat("folder/symbolic", &info) == 0
                      ? static_cast<long long>(info.st_mtime)
                      : -1);
  int out = open("copy", O_RDWR | O_CREAT, 0600);
  Show("sendfile64", sendfile64(out, fd, nullptr, 5));
  close(out);
  close(fd);
  char value[16] = {};
  Show("lsetxattr", lsetxattr("moved", "user.deja", "v", 1, 0));
  Show("getxattr", Text(value, getxattr("moved", "user.deja", value, sizeof value)));
  Show("lgetxattr", Text(value, lgetxattr("moved", "user.deja", value, sizeof value)));
  Show("llistxattr", llistxattr("moved", value, sizeof value));
  Show("lremovexattr", lremovexattr("moved", "user.deja"));
  Show("mkfifoat", mkfifoat(AT_FDCWD, "fifo", 0600));
  Show("mknodat", mknodat(AT_FDCWD, "node", S_IFREG | 0600, 0));
  for (const char* name :
       {"fifo", "node", "copy", "made", "moved", "folder/link", "folder/symbolic"})
    Show("unlinkat", unlinkat(AT_FDCWD, name, 0));
  Show("unlinkat", unlinkat(AT_FDCWD, "folder", AT_REMOVEDIR));
}

void MadeUpNames() {
  struct Make {
    const char* name;
    int (*make)(char*);
  } const makes[] = {
      {"mkstemp64", [](char* path) { return mkstemp64(path); }},
      {"mkostemp64", [](char* path) { return mkostemp64(path, O_CLOEXEC); }},
      {"mkstemps64", [](char* path) { return mkstemps64(path, 4); }},
      {"mkostemps64", [](char* path) { return mkostemps64(path, 4, O_CLOEXEC); }},
  };
  for (const Make& one : makes) {
    std::string path = strchr(one.name, 's') != nullptr && strstr(one.name, "temps") != nullptr
                           ? "tmp-XXXXXX.txt"
                           : "tmp-XXXXXX";
    const int fd = one.make(path.data());
    Show(one.name, fd >= 0);
    ShowOfThisRun(one.name, path);
    close(fd);
    unlink(path.c_str());
  }
  char name[L_tmpnam];
  ShowOfThisRun("tmpnam", Old<char*(char*)>("tmpnam")(name));
  ShowOfThisRun("tmpnam_r", Old<char*(char*)>("tmpnam_r")(name));
  char* made = Old<char*(const char*, const char*)>("tempnam")(".", "x");
  ShowOfThisRun("tempnam", made);
  free(made);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  Reads(folder + "/data.txt");
  Looks(folder + "/data.txt", folder);
  Lists(folder);
  Changes();
  MadeUpNames();
  return 0;
}
