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

TEST(ProcessStatusTest, ASignalWithAHandlerOrThatIsIgnoredDoesNotEndAProcess) {
  const auto was = signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(EffectOf(SIGUSR1, getpid()), SignalEffect::kEnds);
  signal(SIGUSR1, SIG_IGN);
  EXPECT_EQ(EffectOf(SIGUSR1, getpid()), SignalEffect::kHandled);
  signal(SIGUSR1, [](int) {});
  EXPECT_EQ(EffectOf(SIGUSR1, getpid()), SignalEffect::kHandled);
  signal(SIGUSR1, was);
}

TEST(ProcessStatusTest, ASignalThatIsBlockedPends) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMAX);
  EXPECT_EQ(EffectOf(SIGRTMAX, getpid()), SignalEffect::kEnds);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  EXPECT_EQ(EffectOf(SIGRTMAX, getpid()), SignalEffect::kPends);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(ProcessStatusTest, SomeSignalsEndNoProcessAndOneAlwaysDoes) {
  for (const int signal : {SIGCHLD, SIGWINCH, SIGSTOP})
    EXPECT_EQ(EffectOf(signal, getpid()), SignalEffect::kHandled);
  EXPECT_EQ(EffectOf(SIGKILL, getpid()), SignalEffect::kEnds);
}

}  // namespace
}  // namespace deja::replayer
