#include "cli/events/symbolizer.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>

namespace deja::cli {
namespace {

__attribute__((noinline)) void* CallerAddress() {
  return __builtin_return_address(0);
}

__attribute__((always_inline)) inline void* Inlined() {
  return CallerAddress();
}

struct Code {
  std::string path;
  uint64_t offset = 0;
};

Code Locate(void* address) {
  Dl_info info;
  link_map* map = nullptr;
  dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  return {map->l_name[0] != 0 ? map->l_name : "/proc/self/exe",
          reinterpret_cast<uint64_t>(address) - map->l_addr};
}

TEST(Symbolizer, NamesFunctionFileAndLine) {
  void* address = CallerAddress();
  int line = __LINE__ - 1;
  Code code = Locate(address);
  Symbolizer symbolizer;
  auto frames = symbolizer.Resolve(code.path, "", code.offset, true);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_NE(frames[0].function.find("NamesFunctionFileAndLine"), std::string::npos)
      << frames[0].function;
  EXPECT_EQ(frames[0].Place(), "symbolizer_test.cc:" + std::to_string(line));
}

TEST(Symbolizer, ListsInlinedFunctionsInnermostFirst) {
  void* address = Inlined();
  int line = __LINE__ - 1;
  Code code = Locate(address);
  Symbolizer symbolizer;
  auto frames = symbolizer.Resolve(code.path, "", code.offset, true);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].inlined);
  EXPECT_NE(frames[0].function.find("Inlined"), std::string::npos) << frames[0].function;
  EXPECT_EQ(frames[1].line, line);
  EXPECT_NE(frames[1].function.find("ListsInlined"), std::string::npos) << frames[1].function;
}

// Whether or not its debug information is installed: its lines are of no use, and take long to
// read.
TEST(Symbolizer, TheCLibraryHasFunctionsWithoutLines) {
  Code code = Locate(dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "qsort"));
  Symbolizer symbolizer;
  auto frames = symbolizer.Resolve(code.path, "", code.offset, false);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].function, "qsort");
  EXPECT_EQ(frames[0].file, "");
}

TEST(Symbolizer, ShowsModuleAndOffsetOfWhatIsNotThere) {
  Symbolizer symbolizer;
  auto frames = symbolizer.Resolve("/nowhere/libgone.so", "id", 0x1234, true);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].Describe(), "libgone.so+0x1234");
}

TEST(Symbolizer, FunctionsOfPythonAndOfImportedStacks) {
  Symbolizer symbolizer;
  auto frames = symbolizer.Resolve("python:step:/job/train.py", "", 7, true);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].function, "step");
  EXPECT_EQ(frames[0].Place(), "train.py:7");
  frames = symbolizer.Resolve("python:digits::Reducer::Run<float>:/src/reducer.cc", "", 9, true);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].function, "digits::Reducer::Run<float>");
  EXPECT_EQ(frames[0].Place(), "reducer.cc:9");
}

TEST(Symbolizer, RefusesABinaryWithAnotherBuildId) {
  Code code = Locate(CallerAddress());
  Symbolizer symbolizer;
  auto frames = symbolizer.Resolve("/proc/self/exe", "not its build id", code.offset, true);
  EXPECT_EQ(frames[0].file, "");
}

}  // namespace
}  // namespace deja::cli
