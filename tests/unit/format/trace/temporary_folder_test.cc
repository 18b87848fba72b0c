#include "format/trace/temporary_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;

class TemporaryFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("TMPDIR", scratch_.path().c_str(), 1); }
  void TearDown() override { unsetenv("TMPDIR"); }

  [[nodiscard]] size_t Folders() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(scratch_.path()), fs::directory_iterator()));
  }

  // A process that makes a folder with a file in it and goes on as `then` says.
  template <typename Then>
  static pid_t Start(Then then) {
    int made[2];
    EXPECT_EQ(pipe(made), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto folder = TempFolder::Make("deja-test-");
      if (!folder) _exit(1);
      std::ofstream((*folder)->path() + "/file") << "text";
      [[maybe_unused]] const ssize_t ignored = write(made[1], "x", 1);
      then();
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(made[0], &byte, 1), 1);
    close(made[0]);
    close(made[1]);
    return child;
  }
  static int EndOf(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  samples::ScratchFolder scratch_;
};

TEST_F(TemporaryFolderTest, TheObjectRemovesIt) {
  {
    const auto folder = TempFolder::Make();
    ASSERT_TRUE(folder.has_value());
    fs::create_directories((*folder)->path() + "/a/b");
    EXPECT_EQ(Folders(), 1u);
  }
  EXPECT_EQ(Folders(), 0u);
}

TEST_F(TemporaryFolderTest, ASignalThatEndsTheProcessRemovesIt) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const pid_t child = Start([] {});
    EXPECT_EQ(Folders(), 1u);
    kill(child, signal);
    const int status = EndOf(child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(Folders(), 0u);
  }
}

TEST_F(TemporaryFolderTest, NoFolderIsMadeOnceASignalEndsTheProcess) {
  for (int i = 0; i < 50; ++i) {
    const pid_t child = Start([] {
      for (;;) (void)TempFolder::Make();
    });
    kill(child, SIGTERM);
    EXPECT_EQ(WTERMSIG(EndOf(child)), SIGTERM);
    ASSERT_EQ(Folders(), 0u);
  }
}

TEST_F(TemporaryFolderTest, ASignalThatIsIgnoredDoesNothing) {
  signal(SIGHUP, SIG_IGN);
  const pid_t child = Start([] {});
  signal(SIGHUP, SIG_DFL);
  kill(child, SIGHUP);
  EXPECT_EQ(Folders(), 1u);
  kill(child, SIGTERM);
  EXPECT_EQ(WTERMSIG(EndOf(child)), SIGTERM);
  EXPECT_EQ(Folders(), 0u);
}

TEST_F(TemporaryFolderTest, TheNextOneRemovesWhatAKilledProcessHasLeft) {
  const pid_t killed = Start([] {});
  const pid_t living = Start([] {});
  kill(killed, SIGKILL);
  EndOf(killed);
  EXPECT_EQ(Folders(), 2u);
  const auto folder = TempFolder::Make();
  ASSERT_TRUE(folder.has_value());
  EXPECT_EQ(Folders(), 2u) << "its own, and that of the living process";
  kill(living, SIGKILL);
  EndOf(living);
}

// A process that makes a folder, and that the kernel kills at its first system call of this number.
pid_t StartKilledAt(int number) {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{.len = std::size(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      _exit(77);
    if (auto folder = TempFolder::Make("deja-test-"))
      fs::create_directories((*folder)->path() + "/a/b");
    _exit(0);
  }
  return child;
}

TEST_F(TemporaryFolderTest, AProcessThatIsKilledWhileItMakesOrRemovesOneLeavesNothingForEver) {
  // Before the lock, and so before the mark; between the mark and the last name; while contents,
  // mark and folder are removed.
  for (const int call : {SYS_flock, SYS_rename, SYS_unlinkat, SYS_unlink, SYS_rmdir}) {
    const pid_t killed = StartKilledAt(call);
    const int status = EndOf(killed);
    ASSERT_TRUE(WIFSIGNALED(status)) << call << ": " << status;
    ASSERT_EQ(Folders(), 1u) << call;
    { const auto folder = TempFolder::Make(); }
    EXPECT_EQ(Folders(), 0u) << call;
  }
}

TEST_F(TemporaryFolderTest, OneThatIsMadeAtTheMomentStays) {
  const std::string making = scratch_.path() + "/deja-making-abcdef";
  fs::create_directory(making);
  const int held = open(making.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  { const auto folder = TempFolder::Make(); }
  EXPECT_TRUE(fs::exists(making));
  close(held);
  std::ofstream(making + "/file") << "not Deja's";
  { const auto folder = TempFolder::Make(); }
  EXPECT_TRUE(fs::exists(making + "/file"));
  fs::remove(making + "/file");
  { const auto folder = TempFolder::Make(); }
  EXPECT_FALSE(fs::exists(making));
}

TEST_F(TemporaryFolderTest, OtherFoldersStay) {
  fs::create_directories(scratch_.path() + "/deja-backup/x");
  fs::create_directories(scratch_.path() + "/somebody/deja-x");
  fs::create_directory_symlink("somebody", scratch_.path() + "/deja-link");
  std::ofstream(scratch_.path() + "/somebody/.deja-temporary") << "";
  { const auto folder = TempFolder::Make(); }
  EXPECT_TRUE(fs::exists(scratch_.path() + "/deja-backup/x"));
  EXPECT_TRUE(fs::exists(scratch_.path() + "/somebody/.deja-temporary"));
}

}  // namespace
}  // namespace deja::format
