#include "replayer/sockets/family_sockets.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

namespace deja::replayer {
namespace {

using preload::SocketAddress;

class FamilySocketsTest : public testing::Test {
 protected:
  FamilySocketsTest() {
    SocketAddress program;
    sockaddr unnamed{};
    unnamed.sa_family = AF_UNIX;
    program.Set(&unnamed, sizeof unnamed);
    address_ = FamilyAddress("/scratch/" + std::to_string(getpid()), program);
    listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(address_.bytes), address_.size), 0);
    EXPECT_EQ(listen(listener_, 0), 0);
    constexpr timeval kPatience{5, 0};  // of accept
    setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  }
  ~FamilySocketsTest() override { close(listener_); }

  SocketAddress address_;
  int listener_;
};

TEST_F(FamilySocketsTest, ASignalDoesNotEndAConnect) {
  struct sigaction interrupts {};
  interrupts.sa_handler = [](int) {};  // without SA_RESTART, as Python's
  sigaction(SIGUSR1, &interrupts, nullptr);
  const int first = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(ConnectFamily(first, address_, 0), 0);
  // The listener's queue is full: the next one waits.
  const int second = socket(AF_UNIX, SOCK_STREAM, 0);
  std::atomic<int> tid{0};
  std::atomic<int> result{-2};
  std::thread connects([&] {
    tid = static_cast<int>(syscall(SYS_gettid));
    result = ConnectFamily(second, address_, 0);
  });
  const auto waits = [&] {
    long call = -1;
    std::ifstream("/proc/self/task/" + std::to_string(tid.load()) + "/syscall") >> call;
    return call == SYS_connect;
  };
  while (!waits() && result == -2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pthread_kill(connects.native_handle(), SIGUSR1);
  const int accepted[] = {accept(listener_, nullptr, nullptr), accept(listener_, nullptr, nullptr)};
  connects.join();
  EXPECT_EQ(result.load(), 0);
  EXPECT_EQ(write(second, "x", 1), 1);
  for (const int fd : {first, second, accepted[0], accepted[1]}) close(fd);
}

}  // namespace
}  // namespace deja::replayer
