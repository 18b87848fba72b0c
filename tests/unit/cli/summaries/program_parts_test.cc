#include "cli/summaries/program_parts.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cli/programs/build_id.h"
#include "common/os/cpu.h"
#include "tests/support/temp_dir.h"

namespace deja::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ProgramPartsTest : public testing::Test {
 protected:
  ProgramPartsTest() {
    parts_.executable = "/proc/self/exe";
    parts_.executable_build_id = BuildIdOf(parts_.executable);
    parts_.cpu_features = CpuFeatures();
  }
  // A module as it is now, with that many bytes.
  std::string Module(const std::string& name, size_t bytes) {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << std::string(bytes, '#');
    const timespec times[2] = {{1700000000, 5}, {1700000000, 5}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    parts_.modules[path] = {bytes, 1700000000};
    return path;
  }
  // "part: text", the folder's name left out.
  std::vector<std::string> Changes() {
    std::vector<std::string> found;
    for (const Change& change : WhatChanged(parts_)) {
      std::string text = change.part + ": " + change.text;
      for (size_t at; (at = text.find(folder_.path())) != std::string::npos;)
        text.erase(at, folder_.path().size() + 1);
      found.push_back(text);
    }
    return found;
  }

  TempDir folder_;
  ProgramParts parts_;
};

TEST_F(ProgramPartsTest, NamesOfPackages) {
  Packages packages;
  for (const char* entry : {"numpy-1.26.4.dist-info", "PyYAML-6.0.egg-info", "six.egg-info",
                            "foo_bar-2.0rc1-py3.11.egg-info", "numpy", "README.txt"})
    AddPackage(entry, packages);
  EXPECT_EQ(packages,
            (Packages{{"PyYAML", "6.0"}, {"foo_bar", "2.0rc1"}, {"numpy", "1.26.4"}, {"six", ""}}));
}

TEST_F(ProgramPartsTest, NothingHasChanged) {
  Module("train.py", 10);
  EXPECT_THAT(Changes(), IsEmpty());
}

TEST_F(ProgramPartsTest, PackagesComeAndGoAndHaveOtherVersions) {
  const std::string folder = folder_ / "site-packages";
  for (const char* name : {"numpy-2.0.1.dist-info", "six-1.16.dist-info", "flash-0.1.dist-info"})
    std::filesystem::create_directories(folder + "/" + name);
  parts_.packages[folder] = {{"numpy", "1.26.4"}, {"six", "1.16"}, {"torch", "2.15.0"}};
  EXPECT_THAT(Changes(), ElementsAre("package: numpy 1.26.4 recorded, 2.0.1 here",
                                     "package: torch 2.15.0 is not in site-packages any more",
                                     "package: flash 0.1 was installed since the recording"));
}

TEST_F(ProgramPartsTest, ModulesAreKnownBySizeAndTime) {
  std::ofstream(Module("longer.py", 10)) << "now it has more bytes";
  const std::string touched = Module("touched.py", 10);
  const timespec times[2] = {{1700000060, 0}, {1700000060, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, touched.c_str(), times, 0), 0);
  std::filesystem::remove(Module("gone.py", 10));
  EXPECT_THAT(
      Changes(),
      ElementsAre("module: gone.py is not here", "module: longer.py: 10 bytes recorded, 21 here",
                  "module: touched.py: changed at 2023-11-14 22:13:20 UTC recorded, at "
                  "2023-11-14 22:14:20 UTC here, with as many bytes"));
}

TEST_F(ProgramPartsTest, ModulesOfAPackageAreOneChange) {
  Module("site-packages/torch/a.py", 10);
  for (const char* name : {"b", "c", "d"})
    std::filesystem::remove(Module("site-packages/torch/" + std::string(name) + ".py", 10));
  EXPECT_THAT(Changes(), ElementsAre("module: 3 of 4 modules of site-packages/torch are others"));
}

TEST_F(ProgramPartsTest, ManyModulesAreCounted) {
  for (int i = 0; i < 20; ++i) std::filesystem::remove(Module("m" + std::to_string(i) + ".py", 10));
  const std::vector<std::string> changes = Changes();
  ASSERT_EQ(changes.size(), 9u);
  EXPECT_EQ(changes.back(), "module: 12 more are others");
}

TEST_F(ProgramPartsTest, TheLikeliestComesFirst) {
  parts_.executable_build_id = "another";
  std::filesystem::remove(Module("gone.py", 10));
  parts_.libraries["/gone/liba.so"] = "an id";
  parts_.cpu_features = "sse9";
  parts_.kernel = "Linux 1.0";
  std::vector<std::string> order;
  for (const Change& change : WhatChanged(parts_)) order.push_back(change.part);
  EXPECT_THAT(order, ElementsAre("executable", "module", "library", "cpu", "kernel"));
}

}  // namespace
}  // namespace deja::cli
