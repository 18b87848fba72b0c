#include "preload/meet/connection_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "preload/files/absolute_path.h"

namespace deja::preload {
namespace {

TEST(ConnectionNames, AFifoSaysItsPathAndItsDirections) {
  const auto reads = ConnectionName::Open("/run/a to b", O_RDONLY | O_NONBLOCK, 2, "0.1");
  const FifoName read(reads.text);
  EXPECT_EQ(read.path, "/run/a to b");
  EXPECT_TRUE(read.opened && read.reads && !read.writes);
  const auto writes = ConnectionName::Open("/run/x #1 of", O_WRONLY, 1, "0");
  const FifoName write(writes.text);
  EXPECT_EQ(write.path, "/run/x #1 of");
  EXPECT_TRUE(write.opened && !write.reads && write.writes);
  const auto does_both = ConnectionName::Open("/run/x to read", O_RDWR, 1, "0");
  const FifoName both(does_both.text);
  EXPECT_EQ(both.path, "/run/x to read");
  EXPECT_TRUE(both.opened && both.reads && both.writes);
}

TEST(ConnectionNames, TheLongestPathFits) {
  const std::string path = "/" + std::string(kMaxFifoPath - 1, 'x');
  const auto name = ConnectionName::OfParent(
      ConnectionName::Open(path, O_RDWR, 4294967295, std::string(200, '1').c_str()));
  EXPECT_EQ(FifoName(name.text).path, path);
  EXPECT_TRUE(FifoName(name.text).writes);
}

TEST(ConnectionNames, AnInheritedFifoSaysItsPath) {
  const auto inherited = ConnectionName::InheritedFifo(0, "/run/x from y");
  const FifoName input(inherited.text);
  EXPECT_EQ(input.path, "/run/x from y");
  EXPECT_FALSE(input.opened);
  const auto other = ConnectionName::OfParent(ConnectionName::InheritedFifo(7, "/run/x"));
  EXPECT_EQ(FifoName(other.text).path, "/run/x");
}

TEST(ConnectionNames, OthersAreNoFifos) {
  for (const char* name : {"stdin", "fd 5", "connect unix /from x #1 of thread 0", "open ",
                           "open #", "accept unix /open x to read #1", "inherited ", ""})
    EXPECT_TRUE(FifoName(name).path.empty()) << name;
}

TEST(ConnectionNames, AClientHasConnectedItselfOrItsAncestorHas) {
  SocketAddress address;
  address.Set("\1\0/run/x", 8);
  const auto own = ConnectionName::Connect(address, 1, "0");
  const auto childs = ConnectionName::OfParent(own);
  EXPECT_TRUE(IsNameOfClient(own.text));
  EXPECT_TRUE(IsNameOfClient(childs.text));
  EXPECT_TRUE(IsNameOfClient(ConnectionName::OfParent(childs).text));
  for (const char* name : {"fd 5", "accept unix connect #1", "inherited accept unix /run/x #1",
                           "inherited ", "connect", ""})
    EXPECT_FALSE(IsNameOfClient(name)) << name;
}

TEST(ConnectionNames, TheZeroAtTheEndOfAnAddressDoesNotCount) {
  using std::literals::string_view_literals::operator""sv;
  EXPECT_EQ(WithoutEndingZeros("\1\0/run/x\0"sv), "\1\0/run/x"sv);
  EXPECT_EQ(WithoutEndingZeros("\1\0\0"sv), "\1\0\0"sv) << "an abstract name may be empty";
  EXPECT_EQ(WithoutEndingZeros(""), "");
}

TEST(DescriptorNames, AreTheDescriptorOfAPath) {
  EXPECT_EQ(DescriptorNamedBy("/dev/stdin"), 0);
  EXPECT_EQ(DescriptorNamedBy("/dev/stderr"), 2);
  EXPECT_EQ(DescriptorNamedBy("/dev/fd/63"), 63);
  EXPECT_EQ(DescriptorNamedBy("/proc/self/fd/7"), 7);
  for (const char* path : {"/dev/fd/", "/dev/fd/7x", "/dev/fd/-1", "/dev/fd/99999999999999999999",
                           "/proc/self/fd/7/x", "/dev/stdin2", ""})
    EXPECT_EQ(DescriptorNamedBy(path), -1) << path;
}

}  // namespace
}  // namespace deja::preload
