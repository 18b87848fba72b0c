// Filters as this kernel takes them: tried in child processes, since they are for good.
#include "cli/fence/fence_filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <ios>

namespace deja::cli {
namespace {

// What `act` returns behind the filter.
int Behind(const FilterRules& rules, const std::function<int()>& act) {
  std::vector<sock_filter> filter = MakeFenceFilter(rules);
  const pid_t child = fork();
  if (child == 0) {
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
      _exit(111);
    _exit(act());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int ErrnoOf(long result) {
  return result < 0 ? errno : 0;
}

TEST(FenceFilterTest, TheKernelTakesEachOfThem) {
  for (const int abi : {0, 1, 2, 3, 4, 5, 6, 7})
    for (const bool writes : {false, true})
      for (const bool network : {false, true})
        EXPECT_EQ(Behind({writes, network, true, abi}, [] { return getppid() > 0 ? 0 : 1; }), 0)
            << abi << writes << network;
}

TEST(FenceFilterTest, ACallThatChangesTheMachineIsRefused) {
  const FilterRules rules{true, true, true, 6};
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(syscall(SYS_mount, "", "/", "", 0, nullptr)); }),
            EPERM);
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(syscall(SYS_bpf, 0, nullptr, 0)); }), EPERM);
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(syscall(425, 1, nullptr)); }), ENOSYS);  // io_uring
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(syscall(SYS_keyctl, 0)); }), ENOSYS);
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(syscall(463)); }), ENOSYS);  // setxattrat
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(syscall(9999)); }), ENOSYS);
}

// By a descriptor that only reads, and as the owner of the file.
TEST(FenceFilterTest, ControlsThatChangeAFileSystemAreRefused) {
  const FilterRules rules{true, true, true, 6};
  const auto control_error = [&](unsigned long request) {
    return Behind(rules, [=] {
      char argument[4096] = {};
      return ErrnoOf(ioctl(open("/", O_RDONLY), request, argument));
    });
  };
  for (const unsigned long request :
       {0x5000940EUL /* BTRFS_IOC_SUBVOL_CREATE */, 0x50009418UL /* the same, version 2 */,
        0x50009401UL /* BTRFS_IOC_SNAP_CREATE */, 0x50009417UL /* the same, version 2 */,
        0x5000940FUL /* BTRFS_IOC_SNAP_DESTROY */, 0x4008941AUL /* BTRFS_IOC_SUBVOL_SETFLAGS */,
        0x800C6613UL /* FS_IOC_SET_ENCRYPTION_POLICY */,
        0xC0506617UL /* FS_IOC_ADD_ENCRYPTION_KEY */, 0x40047211UL /* FAT_IOCTL_SET_ATTRIBUTES */,
        0x8004587DUL /* FS_IOC_SHUTDOWN */, 0x40086602UL /* FS_IOC_SETFLAGS */})
    EXPECT_EQ(control_error(request), EPERM) << std::hex << request;
  EXPECT_NE(control_error(0x40049409UL /* FICLONE */), EPERM);
  EXPECT_NE(control_error(0x5401UL /* TCGETS */), EPERM);
}

// There is no holder of the listener here, so the kernel answers with ENOSYS.
TEST(FenceFilterTest, CallsThatDependOnTheFileAreAsked) {
  const FilterRules rules{false, false, false, 6};
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(chmod("/nowhere", 0600)); }), ENOSYS);
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(fchmod(0, 0600)); }), ENOSYS);
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(setpriority(PRIO_PROCESS, 1, 1)); }), ENOSYS);
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(setpriority(PRIO_PGRP, 0, 1)); }), EPERM);
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(setpriority(PRIO_PROCESS, 0, 1)); }), 0);
  EXPECT_EQ(Behind({true, false, false, 6}, [] { return ErrnoOf(chmod("/nowhere", 0600)); }),
            ENOENT);
}

TEST(FenceFilterTest, SocketsAreOfTheReplayItself) {
  const FilterRules rules{false, false, false, 6};
  const auto socket_error = [&](int domain, int type, int protocol) {
    return Behind(rules, [=] { return ErrnoOf(socket(domain, type, protocol)); });
  };
  EXPECT_EQ(socket_error(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), 0);
  EXPECT_EQ(socket_error(AF_UNIX, SOCK_SEQPACKET, 0), 0);
  EXPECT_EQ(socket_error(AF_UNIX, SOCK_DGRAM, 0), EPERM);
  EXPECT_EQ(socket_error(AF_NETLINK, SOCK_RAW, 0), 0);
  EXPECT_EQ(socket_error(AF_NETLINK, SOCK_RAW, 4), EAFNOSUPPORT);
  EXPECT_EQ(socket_error(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT);
  EXPECT_EQ(socket_error(AF_INET, SOCK_DGRAM, 0), ENOSYS);
  constexpr int kFastOpen = 0x20000000;
  EXPECT_EQ(Behind(rules, [] { return ErrnoOf(sendto(0, "", 0, kFastOpen, nullptr, 0)); }),
            EOPNOTSUPP);
}

TEST(FenceFilterTest, WithoutLandlocksPartItDoesWhatItCan) {
  EXPECT_EQ(Behind({false, false, false, 2},
                   [] { return ErrnoOf(open("/dev/null", O_RDONLY | O_TRUNC)); }),
            EACCES);
  EXPECT_EQ(Behind({false, false, false, 3},
                   [] { return ErrnoOf(open("/dev/null", O_RDONLY | O_TRUNC)); }),
            0);
  EXPECT_EQ(Behind({false, false, false, 5}, [] { return ErrnoOf(kill(1, 0)); }), ENOSYS);
}

}  // namespace
}  // namespace deja::cli
