// The functions that this program takes from common/old_glibc_*.cc say what glibc's own say.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace {

template <typename Function>
Function* OfGlibc(Function* own, const char* name) {
  static void* glibc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  auto* found = reinterpret_cast<Function*>(dlsym(glibc, name));
  EXPECT_NE(found, own) << name;
  return found;
}

TEST(OldGlibc, NamesOfSignals) {
  auto* known = OfGlibc(sigabbrev_np, "sigabbrev_np");
  if (known == nullptr) GTEST_SKIP() << "this glibc has no sigabbrev_np";
  for (int signal = -1; signal < 70; ++signal)
    EXPECT_STREQ(sigabbrev_np(signal), known(signal)) << signal;
}

TEST(OldGlibc, NamesOfErrors) {
  auto* known = OfGlibc(strerrordesc_np, "strerrordesc_np");
  if (known == nullptr) GTEST_SKIP() << "this glibc has no strerrordesc_np";
  for (int error = -1; error < 140; ++error)
    EXPECT_STREQ(strerrordesc_np(error), known(error)) << error;
}

TEST(OldGlibc, StatOfALinkAndOfItsTarget) {
  char folder[] = "/tmp/deja-old-glibc-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string link = std::string(folder) + "/link";
  ASSERT_EQ(symlink("/", link.c_str()), 0);
  struct stat followed {};
  struct stat itself {};
  struct stat open_one {};
  struct stat64 below {};
  EXPECT_EQ(stat(link.c_str(), &followed), 0);
  EXPECT_EQ(lstat(link.c_str(), &itself), 0);
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_EQ(fstat(fd, &open_one), 0);
  EXPECT_EQ(fstatat64(fd, "link", &below, AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_TRUE(S_ISDIR(followed.st_mode));
  EXPECT_TRUE(S_ISDIR(open_one.st_mode));
  EXPECT_TRUE(S_ISLNK(itself.st_mode));
  EXPECT_EQ(itself.st_ino, below.st_ino);
  EXPECT_EQ(itself.st_size, below.st_size);
  close(fd);
  unlink(link.c_str());
  rmdir(folder);
}

TEST(OldGlibc, StatOfNothing) {
  struct stat info {};
  errno = 0;
  EXPECT_EQ(stat("/no/such/file", &info), -1);
  EXPECT_EQ(errno, ENOENT);
  errno = 0;
  EXPECT_EQ(fstat(-1, &info), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
