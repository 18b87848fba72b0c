#include "common/process/memory_cgroup.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/sample_trace.h"

namespace deja {
namespace {

using Files = std::vector<std::string>;

TEST(MemoryCgroupTest, VersionTwoHasOneHierarchy) {
  EXPECT_EQ(CgroupFiles("0::/system.slice/job.service\n"),
            (Files{"/sys/fs/cgroup/system.slice/job.service/memory.events",
                   "/sys/fs/cgroup/memory.events"}));
  EXPECT_EQ(CgroupFiles("0::/"), Files{"/sys/fs/cgroup/memory.events"});
}

TEST(MemoryCgroupTest, VersionOneHasOneForEachController) {
  EXPECT_EQ(CgroupFiles("5:devices:/a\n4:cpu,memory:/job/3\n2:memorytags:/b\n1:name=systemd:/c\n"),
            (Files{"/sys/fs/cgroup/memory/job/3/memory.oom_control",
                   "/sys/fs/cgroup/memory/memory.oom_control"}));
}

TEST(MemoryCgroupTest, OtherTextNamesNoCgroup) {
  for (const char* text : {"", "\n\n", "4", "4:memory", "4:cpu:/a\n:"})
    EXPECT_TRUE(CgroupFiles(text).empty()) << text;
}

TEST(MemoryCgroupTest, TheCountIsFoundByItsName) {
  const format::samples::ScratchFolder dir;
  const std::string file = dir.path() + "/memory.events";
  std::ofstream(file) << "low 0\nhigh 3\nmax 7\noom 2\noom_kill 41\noom_group_kill 1\n";
  EXPECT_EQ(OomKills(file), 41u);
  std::ofstream(file) << "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n";
  EXPECT_EQ(OomKills(file), 5u);
  std::ofstream(file) << "oom_kill_disable 0\nunder_oom 0\n";  // kernels before 4.13
  EXPECT_FALSE(OomKills(file));
  std::ofstream(file) << "oom_kill many\n";
  EXPECT_FALSE(OomKills(file));
  EXPECT_FALSE(OomKills(dir.path() + "/nothing"));
}

TEST(MemoryCgroupTest, OnesOwnCountIsThatOfTheFile) {
  const CgroupCount own = OwnCgroupCount();
  if (own.file.empty()) GTEST_SKIP() << "no memory cgroup is to be seen here";
  EXPECT_GE(OomKills(own.file).value_or(0), own.oom_kills);
}

}  // namespace
}  // namespace deja
