#include "preload/process/next_program.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/support/sample_trace.h"

namespace deja::preload {
namespace {

using std::string_literals::operator""s;

// An ELF file with one part.
void WriteProgram(const std::string& path, uint32_t part_type) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr part{};
  part.p_type = part_type;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.write(reinterpret_cast<const char*>(&part), sizeof part);
}

TEST(NextProgram, HoldsThePathAndEachArgumentWithItsEnd) {
  std::string name = "cat";
  std::string file = "two words";
  std::string empty;
  char* argv[] = {name.data(), file.data(), empty.data(), nullptr};
  const NextProgram next("./bin/cat", argv);
  EXPECT_EQ(next.path(), "./bin/cat");
  EXPECT_EQ(next.arguments(), "cat\0two words\0\0"s);
  EXPECT_EQ(NextProgram(nullptr, argv).path(), "") << "a descriptor has no path";
  EXPECT_EQ(NextProgram("/bin/cat", nullptr).arguments(), "");
  EXPECT_EQ(NextProgram().arguments(), "");
}

TEST(NextProgram, CutsWhatIsTooLong) {
  std::string large(3 * NextProgram::kMostArguments, 'x');
  std::string last = "last";
  char* argv[] = {last.data(), large.data(), last.data(), nullptr};
  const NextProgram next(large.c_str(), argv);
  EXPECT_EQ(next.path(), std::string(NextProgram::kMostPath - 1, 'x'));
  EXPECT_EQ(next.arguments(), "last\0"s + std::string(NextProgram::kMostArguments - 5, 'x'));
}

TEST(NextProgram, OneThatJustFitsIsWhole) {
  std::string fits(NextProgram::kMostArguments - 1, 'x');
  char* argv[] = {fits.data(), nullptr};
  EXPECT_EQ(NextProgram("/bin/cat", argv).arguments(), fits + '\0');
}

TEST(NextProgram, ANameIsLookedForInThePath) {
  const format::samples::ScratchFolder folder;
  const std::string program = folder.path() + "/deja-sample-program";
  std::ofstream(program) << "#!/bin/sh\n";
  const char* path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  setenv("PATH", ("/nowhere:" + folder.path() + ":/bin").c_str(), 1);
  EXPECT_EQ(NextProgram::InPath("deja-sample-program", nullptr).path(), program);
  EXPECT_EQ(NextProgram::InPath("no-such-program", nullptr).path(), "no-such-program");
  EXPECT_EQ(NextProgram::InPath("./here", nullptr).path(), "./here");
  setenv("PATH", before.c_str(), 1);
}

TEST(NextProgram, OnlyAnElfProgramWithoutALinkerIsStatic) {
  const format::samples::ScratchFolder folder;
  const std::string text = folder.path() + "/text";
  std::ofstream(text) << "#!/bin/sh\n";
  for (const std::string& path : {"/proc/self/exe"s, text, "/nowhere"s, folder.path(), ""s}) {
    NextProgram next(path.c_str(), nullptr);
    next.FindWhetherStatic();
    EXPECT_TRUE(next.records_itself()) << path;
  }
  const std::string program = folder.path() + "/static";
  WriteProgram(program, PT_LOAD);
  NextProgram next(program.c_str(), nullptr);
  EXPECT_TRUE(next.records_itself()) << "as long as no one has looked";
  next.FindWhetherStatic();
  EXPECT_FALSE(next.records_itself());
  WriteProgram(program, PT_INTERP);
  next.FindWhetherStatic();
  EXPECT_TRUE(next.records_itself());
}

}  // namespace
}  // namespace deja::preload
