#include "recorder/files/input_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "digest/digest.h"
#include "format/reader/file_ranges.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "recorder/assembly/whole_recording.h"
#include "recorder/core/recording.h"
#include "recorder/files/file_state.h"
#include "recorder/files/mapped_inputs.h"
#include "recorder/files/opened_input.h"
#include "tests/unit/recorder/core/fake_log.h"

namespace deja::recorder {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr size_t kPage = SeenPages::kPage;

Recording* g_recording = nullptr;

class InputFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/deja-inputs-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    FakeLog::Reset();
    EventWriter::ForgetThread(preload::Self());
    Use(InputMode::kDigest);
    OpenedInput::SetFinder([] { return g_recording; });
  }
  void TearDown() override {
    OpenedInput::SetFinder(nullptr);
    EventWriter::ForgetThread(preload::Self());
    std::filesystem::remove_all(folder_);
  }

  void Use(InputMode mode) {
    config_.inputs = mode;
    recording_ = std::make_unique<WholeRecording>(config_, &FakeLog::Create);
    g_recording = recording_.get();
    ASSERT_TRUE(recording_->GoLive());
  }
  Recording& rec() { return *recording_; }
  InputFiles& inputs() { return FilesOf(*recording_).inputs; }

  [[nodiscard]] std::string PathOf(const char* name) const { return folder_ + "/" + name; }

  // A file that has not been changed for long.
  std::string Make(const char* name, size_t size) {
    content_.resize(size);
    for (size_t i = 0; i < size; ++i) content_[i] = static_cast<char>(i * 2654435761u >> 11);
    const std::string path = PathOf(name);
    std::ofstream(path, std::ios::binary) << content_;
    const timespec old[2] = {{1700000000, 0}, {1700000000, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
    return path;
  }

  struct Opening {
    int fd;
    preload::FdObject* input;
  };
  Opening Open(const std::string& path, int flags = O_RDONLY) {
    const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
    EXPECT_GE(fd, 0);
    return {fd, inputs().Opened(rec(), AT_FDCWD, path.c_str(), fd, flags)};
  }
  static void Close(Opening opening) {
    close(opening.fd);
    if (opening.input != nullptr) opening.input->OnUnused(-1);
  }
  static void Read(Opening opening, size_t piece) {
    std::vector<char> bytes(piece);
    for (;;) {
      const ssize_t n = read(opening.fd, bytes.data(), bytes.size());
      if (n <= 0) break;
      const preload::Guard guard;
      opening.input->AfterRead(opening.fd, bytes.data(), static_cast<size_t>(n), -1, 0);
    }
  }

  // All ranges that were recorded, whose hashes are those of `content_` (checked).
  std::vector<std::pair<uint64_t, uint64_t>> Ranges() {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const format::Event& event : FakeLog::last->Events()) {
      const auto* read = event.As<format::FileRead>();
      if (read == nullptr) continue;
      for (const format::FileRange& range : format::RangesOf(*read)) {
        ranges.emplace_back(range.begin, range.size);
        const auto bytes = std::as_bytes(std::span(content_)).subspan(range.begin, range.size);
        EXPECT_EQ(range.hash, digest::HashBytes(bytes)) << range.begin;
      }
    }
    return ranges;
  }
  static std::string WithCommas(std::string_view entries) {
    std::string text(entries);
    std::replace(text.begin(), text.end(), '\0', ',');
    return text;
  }
  // Recorded states as path (below the folder), kind and error.
  std::vector<std::string> States() {
    std::vector<std::string> states;
    for (const format::Event& event : FakeLog::last->Events()) {
      const auto* file = event.As<format::InputFile>();
      if (file == nullptr) continue;
      std::string text(file->path.substr(std::min(folder_.size() + 1, file->path.size())));
      if (S_ISLNK(file->mode)) text += " link " + std::string(file->entries);
      if (S_ISREG(file->mode)) text += " file " + std::to_string(file->size);
      if (file->error != 0) text += " error " + std::to_string(file->error);
      if (file->written) text += " written";
      if (file->tries != 0) text += " by others at try " + std::to_string(file->tries);
      if (file->program) text += " program";
      if (file->program && S_ISDIR(file->mode)) text += " of " + WithCommas(file->entries);
      states.push_back(text + " " + std::to_string(file->opens));
    }
    return states;
  }

  // InputFile.looks of the recorded states.
  static std::vector<uint64_t> Looks() {
    std::vector<uint64_t> looks;
    for (const format::Event& event : FakeLog::last->Events())
      if (const auto* file = event.As<format::InputFile>()) looks.push_back(file->looks);
    return looks;
  }

  Config config_;
  std::string folder_;
  std::string content_;
  std::unique_ptr<WholeRecording> recording_;
};

TEST_F(InputFilesTest, ReadsAreOneRangeWithTheHashOfTheFile) {
  const Opening a = Open(Make("a", 20000));
  Read(a, 700);
  EXPECT_THAT(Ranges(), IsEmpty());  // it may go on
  Close(a);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 20000)));
  EXPECT_THAT(States(), ElementsAre("a file 20000 0"));
}

TEST_F(InputFilesTest, KnownRangesAreNotRecordedAgain) {
  const std::string path = Make("a", 3 * kPage);
  for (int i = 0; i < 3; ++i) {
    const Opening a = Open(path);
    Read(a, kPage);
    Close(a);
  }
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 3 * kPage)));
  EXPECT_THAT(States(), ElementsAre("a file 12288 0"));
}

TEST_F(InputFilesTest, AFileThatOthersChangeIsKeptWholeAtEachOpen) {
  const std::string path = PathOf("state");
  const auto open_again = [&](int flags) {
    inputs().Opening(rec(), AT_FDCWD, path.c_str());
    return Open(path, flags);
  };
  const auto write = [&](const Opening& opening, std::string_view text) {
    ASSERT_NE(opening.input, nullptr);
    ASSERT_EQ(::write(opening.fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    opening.input->OnUnused(opening.fd);
    close(opening.fd);
  };
  write(open_again(O_RDWR | O_CREAT | O_APPEND), "own;");
  Close(open_again(O_RDONLY));
  EXPECT_THAT(States(), IsEmpty());
  std::ofstream(path, std::ios::app) << "another's;";
  content_ = "own;another's;";
  Close(open_again(O_RDONLY));
  EXPECT_THAT(States(), ElementsAre("state file 14 by others at try 3 0"));
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 14)));
  write(open_again(O_RDWR | O_APPEND), "own;");
  Close(open_again(O_RDONLY));
  const size_t before = States().size();
  std::filesystem::remove(path);
  inputs().Opening(rec(), AT_FDCWD, path.c_str());
  EXPECT_EQ(States().size(), before + 1);
  EXPECT_THAT(States().back(), testing::StartsWith("state error 2 by others at try 6"));
}

TEST_F(InputFilesTest, AFileThatOthersMadeIsRecordedAtEachTryToMakeIt) {
  const std::string path = PathOf("lock");
  for (int i = 0; i < 2; ++i) {
    inputs().Opening(rec(), AT_FDCWD, path.c_str());
    inputs().Taken(rec(), AT_FDCWD, path.c_str());  // and is gone again
  }
  EXPECT_THAT(States(), ElementsAre(testing::StartsWith("lock error 17 by others at try 1"),
                                    testing::StartsWith("lock error 2 by others at try 2"),
                                    testing::StartsWith("lock error 17 by others at try 2")));
}

TEST_F(InputFilesTest, AFileThatTheRunMadeIsNoFileOfOthers) {
  const std::string path = PathOf("lock");
  Close(Open(path, O_CREAT | O_EXCL));
  inputs().Opening(rec(), AT_FDCWD, path.c_str());
  inputs().Taken(rec(), AT_FDCWD, path.c_str());
  EXPECT_THAT(States(), IsEmpty());
}

class InputFilesOfEachMode : public InputFilesTest,
                             public testing::WithParamInterface<InputMode> {};

TEST_P(InputFilesOfEachMode, ModulesOfPythonArePartsOfTheProgram) {
  Use(GetParam());
  std::filesystem::create_directories(PathOf("site-packages/torch/__pycache__"));
  std::filesystem::create_directories(PathOf("site-packages/torch-2.15.0.dist-info"));
  Make("site-packages/torch/cuda.py", 30);
  Close(Open(Make("train.py", 100)));
  for (int i = 0; i < 2; ++i) {
    Close(Open(Make("site-packages/torch/__pycache__/cuda.cpython-311.pyc", 70)));
    Close(Open(Make("site-packages/torch/__pycache__/gone.cpython-311.pyc", 80)));
  }
  EXPECT_THAT(
      States(),
      ElementsAre("train.py file 100 program 0",
                  "site-packages program of dtorch-2.15.0.dist-info, 0",
                  "site-packages/torch/cuda.py file 30 program 0",
                  "site-packages/torch/__pycache__/gone.cpython-311.pyc file 80 program 0"));
  EXPECT_THAT(Ranges(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Modes, InputFilesOfEachMode,
                         testing::Values(InputMode::kOff, InputMode::kDigest, InputMode::kFull));

TEST_F(InputFilesTest, AModuleThatIsNamedAsAnInputIsOne) {
  std::strcpy(config_.inputs_include, "*/train.py");
  Use(InputMode::kDigest);
  const Opening module = Open(Make("train.py", 100));
  Read(module, 100);
  Close(module);
  EXPECT_THAT(States(), ElementsAre("train.py file 100 0"));
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 100)));
}

TEST_F(InputFilesTest, AFileInAnotherStateIsAnotherInput) {
  Close(Open(Make("a", 100)));
  const Opening again = Open(Make("a", 200));
  Read(again, 200);
  Close(again);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 200)));
  EXPECT_THAT(States(), ElementsAre("a file 100 0", "a file 200 1"));
}

TEST_F(InputFilesTest, APositionIsFollowedThroughSeeks) {
  const Opening a = Open(Make("a", 10 * kPage));
  lseek(a.fd, 8 * kPage, SEEK_SET);
  a.input->AfterSeek(8 * kPage, 8 * kPage, SEEK_SET);
  Read(a, kPage);
  Close(a);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(8 * kPage, 2 * kPage)));
}

TEST_F(InputFilesTest, ThreadsThatReadPartsInTurnsLoseNothing) {
  constexpr size_t kSize = 256 * kPage;
  const Opening a = Open(Make("a", kSize));
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 4; ++first) {
    threads.emplace_back([&, first] {
      const preload::Guard guard;
      char bytes[kPage];
      for (size_t at = first * kPage; at < kSize; at += 4 * kPage) {
        ASSERT_EQ(pread(a.fd, bytes, kPage, static_cast<off_t>(at)), static_cast<ssize_t>(kPage));
        a.input->AfterRead(a.fd, bytes, kPage, static_cast<int64_t>(at), 0);
      }
      EventWriter::ForgetThread(preload::Self());
    });
  }
  for (std::thread& thread : threads) thread.join();
  Close(a);
  std::vector<bool> known(256);
  for (const auto& [begin, size] : Ranges())
    for (uint64_t at = begin; at < begin + size; at += kPage) known[at / kPage] = true;
  EXPECT_THAT(known, testing::Each(true));
}

TEST_F(InputFilesTest, FilesOfTheRunAreNoInputs) {
  const std::string path = PathOf("own");
  Close(Open(path, O_WRONLY | O_CREAT | O_TRUNC));
  std::ofstream(path) << "the run's own";
  const Opening own = Open(path);
  Read(own, 4);
  Close(own);
  EXPECT_THAT(States(), IsEmpty());
  EXPECT_THAT(Ranges(), IsEmpty());
}

TEST_F(InputFilesTest, AFileThatIsOpenedForReadingAndWritingIsRecordedAsItWas) {
  Close(Open(Make("a", 5000), O_RDWR));
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 5000)));
  EXPECT_THAT(States(), ElementsAre("a file 5000 written 0"));
}

TEST_F(InputFilesTest, TouchedPagesOfAMappingAreRecordedWhenItEnds) {
  constexpr size_t kPages = 4096;
  const Opening a = Open(Make("a", kPages * kPage));
  void* memory = mmap(nullptr, kPages * kPage, PROT_READ, MAP_PRIVATE, a.fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  a.input->AfterMap(memory, kPages * kPage, 0);
  EXPECT_EQ(static_cast<const volatile char*>(memory)[200 * kPage], content_[200 * kPage]);
  EXPECT_THAT(Ranges(), IsEmpty());
  {
    const preload::Guard guard;
    FinishMappings(rec(), memory, kPages * kPage);
  }
  munmap(memory, kPages * kPage);
  Close(a);
  // With the neighbours that the fault brought along, up to the largest page that a kernel makes.
  const auto ranges = Ranges();
  ASSERT_FALSE(ranges.empty());
  const size_t first = ranges.front().first;
  const size_t end = ranges.back().first + ranges.back().second;
  EXPECT_LE(first, 200 * kPage);
  EXPECT_GT(end, 200 * kPage);
  EXPECT_LE(end - first, 512 * kPage);
}

TEST_F(InputFilesTest, LinksHaveTheirRecordedTargetAtEachLook) {
  Use(InputMode::kFull);
  Make("a", 10);
  const std::string link = PathOf("link");
  const auto look = [&] { return inputs().LookedAtLink(rec(), AT_FDCWD, link.c_str()); };
  EXPECT_TRUE(look());
  ASSERT_EQ(symlink("a", link.c_str()), 0);
  EXPECT_TRUE(look());
  EXPECT_TRUE(look());
  ASSERT_EQ(unlink(link.c_str()), 0);
  ASSERT_EQ(symlink("elsewhere", link.c_str()), 0);
  EXPECT_TRUE(look());
  EXPECT_FALSE(inputs().LookedAtLink(rec(), AT_FDCWD, PathOf("a").c_str()));
  EXPECT_THAT(States(), ElementsAre("link link  error " + std::to_string(ENOENT) + " 0",
                                    "link link a 1", "link link elsewhere 3"));
}

TEST_F(InputFilesTest, WhatComesWhereNoLinkWasIsNoLink) {
  Use(InputMode::kFull);
  const auto look = [&] { return inputs().LookedAtLink(rec(), AT_FDCWD, PathOf("a").c_str()); };
  EXPECT_TRUE(look());
  EXPECT_TRUE(look());
  Make("a", 10);
  EXPECT_FALSE(look());
  EXPECT_FALSE(look());
  EXPECT_THAT(States(), ElementsAre("a link  error " + std::to_string(ENOENT) + " 0",
                                    "a link  error " + std::to_string(EINVAL) + " 2"));
}

TEST_F(InputFilesTest, ALinkAndWhatItLeadsToAreTwo) {
  Use(InputMode::kFull);
  Make("a", 10);
  const std::string link = PathOf("link");
  ASSERT_EQ(symlink("a", link.c_str()), 0);
  for (int i = 0; i < 2; ++i) {
    inputs().LookedAtLink(rec(), AT_FDCWD, link.c_str());
    inputs().Looked(rec(), AT_FDCWD, link.c_str(), preload::FileUse::kLook);
  }
  EXPECT_THAT(States(), ElementsAre("link link a 0", "link file 10 0"));
}

TEST_F(InputFilesTest, ResolvingRecordsAllLinksOnTheWay) {
  Use(InputMode::kFull);
  ASSERT_EQ(mkdir(PathOf("real").c_str(), 0700), 0);
  Make("real/a", 10);
  ASSERT_EQ(symlink("real", PathOf("folder").c_str()), 0);
  ASSERT_EQ(symlink("../folder/a", PathOf("real/again").c_str()), 0);
  inputs().Resolved(rec(), AT_FDCWD, PathOf("folder/again").c_str());
  EXPECT_THAT(States(), ElementsAre("folder link real 0", "real/again link ../folder/a 0",
                                    "real/a file 10 0"));
}

TEST_F(InputFilesTest, ALinkThatTheRunMakesIsNoInputButWhatItLeadsToIs) {
  Use(InputMode::kFull);
  Make("a", 10);
  const std::string link = PathOf("own");
  inputs().Looked(rec(), AT_FDCWD, link.c_str(), preload::FileUse::kCreate);
  ASSERT_EQ(symlink("a", link.c_str()), 0);
  EXPECT_TRUE(inputs().LookedAtLink(rec(), AT_FDCWD, link.c_str()));
  inputs().Looked(rec(), AT_FDCWD, link.c_str(), preload::FileUse::kLook);
  EXPECT_THAT(States(), ElementsAre("own error " + std::to_string(ENOENT) + " 0", "a file 10 0"));
}

TEST_F(InputFilesTest, StatesHaveTheLookThatMetThemOrTheNextOne) {
  Use(InputMode::kFull);
  const std::string path = PathOf("a");
  const auto use = [&](preload::FileUse use) {
    inputs().Looked(rec(), AT_FDCWD, path.c_str(), use);
  };
  use(preload::FileUse::kLook);
  use(preload::FileUse::kLook);
  Make("a", 10);
  use(preload::FileUse::kLookAtLink);
  use(preload::FileUse::kLook);
  Make("a", 20);
  use(preload::FileUse::kMetadata);
  EXPECT_THAT(States(), ElementsAre("a error " + std::to_string(ENOENT) + " 0", "a file 10 0",
                                    "a file 20 0"));
  EXPECT_THAT(Looks(), ElementsAre(1, 3, 5));
}

TEST_F(InputFilesTest, DigestsRecordNoLooks) {
  Make("a", 10);
  ASSERT_EQ(symlink("a", PathOf("link").c_str()), 0);
  EXPECT_FALSE(inputs().LookedAtLink(rec(), AT_FDCWD, PathOf("link").c_str()));
  inputs().Looked(rec(), AT_FDCWD, PathOf("a").c_str(), preload::FileUse::kLook);
  inputs().Resolved(rec(), AT_FDCWD, PathOf("link").c_str());
  EXPECT_THAT(States(), IsEmpty());
}

}  // namespace
}  // namespace deja::recorder
