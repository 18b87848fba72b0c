#include "common/os/passed_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace deja {
namespace {

class PassedDescriptorTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0); }
  void TearDown() override {
    for (const int socket : sockets_) close(socket);
  }

  int sockets_[2] = {-1, -1};
  static constexpr std::array<std::byte, 3> kMessage = {std::byte{1}, std::byte{2}, std::byte{3}};
};

TEST_F(PassedDescriptorTest, ADescriptorComesWithItsMessage) {
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_CLOEXEC), 0);
  ASSERT_TRUE(SendWithDescriptor(sockets_[0], kMessage, pipe[1]));
  std::array<std::byte, 3> message{};
  int received = -1;
  ASSERT_EQ(ReceiveWithDescriptor(sockets_[1], message, 0, &received), 3);
  EXPECT_EQ(message, kMessage);
  ASSERT_GE(received, 0);
  EXPECT_NE(fcntl(received, F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(write(received, "x", 1), 1);
  char byte = 0;
  ASSERT_EQ(read(pipe[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  for (const int fd : {pipe[0], pipe[1], received}) close(fd);
}

TEST_F(PassedDescriptorTest, WithoutOneTheMessageComesAlone) {
  ASSERT_TRUE(SendWithDescriptor(sockets_[0], kMessage, -1));
  std::array<std::byte, 8> message{};
  int received = -7;
  EXPECT_EQ(ReceiveWithDescriptor(sockets_[1], message, 0, &received), 3);
  EXPECT_EQ(received, -7);
  EXPECT_EQ(ReceiveWithDescriptor(sockets_[1], message, MSG_DONTWAIT, &received), -1);
  close(sockets_[0]);
  sockets_[0] = -1;
  EXPECT_EQ(ReceiveWithDescriptor(sockets_[1], message, 0, &received), 0);
}

}  // namespace
}  // namespace deja
