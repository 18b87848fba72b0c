// What a signal would do to a process, by what the kernel says of it.
#include "replayer/process/process_status.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace deja::replayer {
namespace {

TEST(ProcessStatusTest, AFieldIsTheRestOfItsLine) {
  const ProcessStatus status(getpid());
  EXPECT_EQ(status.Field("Tgid"), std::to_string(getpid()));
  EXPECT_EQ(status.Field("PPid"), std::to_string(getppid()));
  EXPECT_EQ(status.Field("Tg"), "");
  EXPECT_EQ(status.Field("NoSuchField"), "");
}

TEST(ProcessStatusTest, AProcessThatIsNotThereHasNone) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ProcessStatus(child).Field("State"), "");
}

TEST(ProcessStatusTest, ASignalThatIsKeptDoesNotEndAProcess) {
  const auto was = signal(SIGUSR1, SIG_DFL);
  EXPECT_TRUE(WouldEnd(getpid(), SIGUSR1));
  signal(SIGUSR1, SIG_IGN);
  EXPECT_FALSE(WouldEnd(getpid(), SIGUSR1));
  signal(SIGUSR1, [](int) {});
  EXPECT_FALSE(WouldEnd(getpid(), SIGUSR1));
  signal(SIGUSR1, was);

  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMAX);
  EXPECT_TRUE(WouldEnd(getpid(), SIGRTMAX));
  sigprocmask(SIG_BLOCK, &blocked, &before);
  EXPECT_FALSE(WouldEnd(getpid(), SIGRTMAX));
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(ProcessStatusTest, SomeSignalsEndNoProcessAndOneAlwaysDoes) {
  EXPECT_FALSE(WouldEnd(getpid(), SIGCHLD));
  EXPECT_FALSE(WouldEnd(getpid(), SIGWINCH));
  EXPECT_FALSE(WouldEnd(getpid(), SIGSTOP));
  EXPECT_TRUE(WouldEnd(getpid(), SIGKILL));
}

}  // namespace
}  // namespace deja::replayer
