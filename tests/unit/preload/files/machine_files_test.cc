#include "preload/files/machine_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <set>
#include <string>

namespace deja::preload {
namespace {

std::string NameOf(const char* path, int dirfd = AT_FDCWD, const MachineNaming& naming = {}) {
  char buffer[PATH_MAX];
  return std::string(MachineName(dirfd, path, naming, buffer));
}

TEST(MachineFilesTest, NamesOfTheTable) {
  for (const char* path :
       {"/proc/cpuinfo", "/proc/self/status", "/sys/devices/system/cpu",
        "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/cpu3/topology/core_id",
        "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/user.slice/memory.max",
        "/proc/sys/kernel/hostname", "/etc/machine-id"})
    EXPECT_NE(FindMachineFile(path), nullptr) << path;
}

TEST(MachineFilesTest, FilesThatStayLive) {
  for (const char* path : {"/proc/self/maps", "/proc/self/environ", "/proc/self/fd/3",
                           "/proc/self/exe", "/proc/self/comm", "/proc/1/status", "/etc/passwd",
                           "/etc/resolv.conf", "/home/user/cpuinfo", "/sys/class/net/eth0", ""})
    EXPECT_EQ(FindMachineFile(path), nullptr) << path;
}

TEST(MachineFilesTest, EachPatternHasAReasonAndOnlyOneIsEntropy) {
  int entropy = 0;
  std::set<std::string> patterns;
  for (const MachineFile& file : MachineFiles()) {
    EXPECT_GT(std::strlen(file.reason), 5u) << file.pattern;
    EXPECT_TRUE(patterns.insert(file.pattern).second) << file.pattern;
    entropy += file.is_entropy ? 1 : 0;
  }
  EXPECT_EQ(entropy, 1);
  EXPECT_TRUE(FindMachineFile("/proc/sys/kernel/random/uuid")->is_entropy);
  EXPECT_FALSE(FindMachineFile("/proc/sys/kernel/random/boot_id")->is_entropy);
}

TEST(MachineFilesTest, OneNameForOneFile) {
  EXPECT_EQ(NameOf("/proc//cpuinfo"), "/proc/cpuinfo");
  EXPECT_EQ(NameOf("/proc/./self/../cpuinfo"), "/proc/cpuinfo");
  EXPECT_EQ(NameOf("/proc/123/status", AT_FDCWD, {123, 0, {}}), "/proc/self/status");
  EXPECT_EQ(NameOf("/proc/77/status", AT_FDCWD, {123, 77, {}}), "/proc/self/status");
  EXPECT_EQ(NameOf("/proc/78/status", AT_FDCWD, {123, 77, {}}), "/proc/78/status");
  EXPECT_EQ(NameOf("/proc/thread-self/status"), "/proc/self/status");
  EXPECT_EQ(NameOf("/home/user/file"), "");
  EXPECT_EQ(NameOf("file"), "");
}

TEST(MachineFilesTest, NamesRelativeToAFolder) {
  const int root = open("/", O_RDONLY | O_DIRECTORY);
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(NameOf("proc/cpuinfo", root), "/proc/cpuinfo");
  EXPECT_EQ(NameOf("cpuinfo", proc), "/proc/cpuinfo");
  EXPECT_EQ(NameOf("home/x", root), "");
  EXPECT_EQ(NameOf("cpuinfo", 12345), "");
  close(root);
  close(proc);
}

TEST(MachineFilesTest, AServedFolderStandsForTheRealOne) {
  char folder[] = "/tmp/deja-machine-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string served = std::string(folder) + "/";
  const std::string deep = served + "17/proc";
  ASSERT_EQ(system(("mkdir -p " + deep).c_str()), 0);
  const int fd = open(deep.c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(NameOf("cpuinfo", fd, {0, 0, served}), "/proc/cpuinfo");
  EXPECT_EQ(NameOf("cpuinfo", fd), "");
  close(fd);
  ASSERT_EQ(system(("rm -r " + std::string(folder)).c_str()), 0);
}

TEST(MachineFilesTest, ABufferThatIsTooSmallIsNoName) {
  char buffer[8];
  EXPECT_EQ(MachineName(AT_FDCWD, "/proc/cpuinfo", {}, buffer), "");
}

}  // namespace
}  // namespace deja::preload
