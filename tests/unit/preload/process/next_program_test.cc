#include "preload/process/next_program.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/sample_trace.h"

namespace deja::preload {
namespace {

using std::string_literals::operator""s;

// An ELF file of these parts, each of which has the same bytes.
void WriteProgram(const std::string& path, const std::vector<uint32_t>& types,
                  const std::string& bytes = {}) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phnum = static_cast<uint16_t>(types.size());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  for (const uint32_t type : types) {
    Elf64_Phdr part{};
    part.p_type = type;
    part.p_offset = sizeof header + types.size() * sizeof part;
    part.p_filesz = bytes.size();
    file.write(reinterpret_cast<const char*>(&part), sizeof part);
  }
  file << bytes;
}

std::string Note(const std::string& name, const std::string& text) {
  const Elf64_Nhdr head{static_cast<uint32_t>(name.size() + 1), static_cast<uint32_t>(text.size()),
                        4};
  const auto padded = [](std::string part) {
    part.resize((part.size() + 3) / 4 * 4);
    return part;
  };
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + padded(name + '\0') +
         padded(text);
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
    next.FindWhetherRecorded();
    EXPECT_TRUE(next.records_itself()) << path;
  }
  const std::string program = folder.path() + "/static";
  WriteProgram(program, {PT_LOAD});
  NextProgram next(program.c_str(), nullptr);
  EXPECT_TRUE(next.records_itself()) << "as long as no one has looked";
  next.FindWhetherRecorded();
  EXPECT_FALSE(next.records_itself());
  WriteProgram(program, {PT_LOAD, PT_INTERP});
  next.FindWhetherRecorded();
  EXPECT_TRUE(next.records_itself());
}

// Notes name who has made a program.
TEST(NextProgram, OneOfGoMakesItsOwnCalls) {
  const format::samples::ScratchFolder folder;
  const std::string program = folder.path() + "/program";
  const auto is_recorded = [&](const std::string& notes) {
    WriteProgram(program, {PT_INTERP, PT_NOTE}, notes);
    NextProgram next(program.c_str(), nullptr);
    next.FindWhetherRecorded();
    return next.records_itself();
  };
  EXPECT_FALSE(is_recorded(Note("Go", "id")));
  EXPECT_FALSE(is_recorded(Note("GNU", "seven b") + Note("Go", "")));
  EXPECT_TRUE(is_recorded(Note("GNU", "Go")));
  EXPECT_TRUE(is_recorded(Note("Gon", "") + Note("", "Go")));
  EXPECT_TRUE(is_recorded("Go"));
  EXPECT_TRUE(is_recorded(""));
  // Sizes that lead out of the file, or on in a circle.
  for (const uint32_t size : {UINT32_MAX, UINT32_MAX - 11, 1u << 20}) {
    const Elf64_Nhdr head{size, size, 4};
    EXPECT_TRUE(is_recorded(std::string(reinterpret_cast<const char*>(&head), sizeof head)));
  }
}

}  // namespace
}  // namespace deja::preload
