#include "replayer/files/overlay.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace deja::replayer {
namespace {

namespace fs = std::filesystem;
using preload::FileUse;

class OverlayTest : public testing::Test {
 protected:
  OverlayTest() {
    char pattern[] = "/tmp/deja-overlay-XXXXXX";
    root_ = fs::canonical(mkdtemp(pattern));
    real_ = root_ / "real";
    fs::create_directories(real_ / "folder");
    fs::create_directories(root_ / "scratch");
    Write(real_ / "file", "before");
    Write(real_ / "folder" / "inner", "inner");
    overlay_.Open((root_ / "scratch").string());
  }
  ~OverlayTest() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  static std::string ReadFile(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // The path to use; empty with errno_ set when refused.
  std::string Map(const fs::path& path, FileUse use, int dirfd = AT_FDCWD) {
    char buffer[PATH_MAX];
    const std::string text = path.string();
    const char* mapped = overlay_.Map(dirfd, text.c_str(), use, buffer);
    errno_ = mapped == nullptr ? errno : 0;
    return mapped == nullptr ? "" : mapped;
  }
  // What the program would read under a name; "ENOENT" if it sees none.
  std::string See(const fs::path& path) {
    const std::string mapped = Map(path, FileUse::kRead);
    return mapped.empty() || !fs::exists(mapped) ? "ENOENT" : ReadFile(mapped);
  }
  std::set<std::string> List(const fs::path& path) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(Map(path, FileUse::kRead)))
      names.insert(entry.path().filename().string());
    return names;
  }
  void Overwrite(const fs::path& path, const std::string& text) {
    const std::string mapped = Map(path, FileUse::kCreate);
    ASSERT_FALSE(mapped.empty()) << strerror(errno_);
    Write(mapped, text);
  }
  void Rename(const fs::path& from, const fs::path& to) {
    const std::string source = Map(from, FileUse::kRemove);
    const std::string target = Map(to, FileUse::kCreate);
    ASSERT_EQ(rename(source.c_str(), target.c_str()), 0) << strerror(errno);
  }

  fs::path root_;
  fs::path real_;
  Overlay overlay_;
  int errno_ = 0;
};

TEST_F(OverlayTest, ReadsGoToTheRealFileUntilSomethingIsWritten) {
  EXPECT_EQ(Map(real_ / "file", FileUse::kRead), (real_ / "file").string());
  EXPECT_EQ(Map("relative", FileUse::kRead), "relative");
}

TEST_F(OverlayTest, AWrittenFileIsReadBackAndTheRealOneStays) {
  Overwrite(real_ / "file", "after");
  EXPECT_EQ(See(real_ / "file"), "after");
  EXPECT_EQ(ReadFile(real_ / "file"), "before");
}

TEST_F(OverlayTest, AppendingStartsFromTheRealContent) {
  const std::string mapped = Map(real_ / "file", FileUse::kWrite);
  std::ofstream(mapped, std::ios::app) << "+more";
  EXPECT_EQ(See(real_ / "file"), "before+more");
  EXPECT_EQ(ReadFile(real_ / "file"), "before");
}

TEST_F(OverlayTest, ANewFileAppearsInTheListing) {
  Overwrite(real_ / "new", "x");
  EXPECT_EQ(List(real_), (std::set<std::string>{"file", "folder", "new"}));
  EXPECT_FALSE(fs::exists(real_ / "new"));
}

TEST_F(OverlayTest, WritingWhatIsNotThereFailsAsItWould) {
  Map(real_ / "nothing", FileUse::kWrite);
  EXPECT_EQ(errno_, ENOENT);
  Map(real_ / "nowhere" / "file", FileUse::kCreate);
  EXPECT_EQ(errno_, ENOENT);
}

TEST_F(OverlayTest, ARemovedFileIsGoneForTheProgramOnly) {
  ASSERT_EQ(unlink(Map(real_ / "file", FileUse::kRemove).c_str()), 0);
  EXPECT_EQ(See(real_ / "file"), "ENOENT");
  EXPECT_EQ(errno_, ENOENT);
  EXPECT_EQ(ReadFile(real_ / "file"), "before");
  EXPECT_EQ(Map(real_ / "file", FileUse::kRemove), "");
  Overwrite(real_ / "folder" / "x", "x");
  Overwrite(real_ / "file", "again");
  EXPECT_EQ(See(real_ / "file"), "again");
}

TEST_F(OverlayTest, AListingShowsWhatIsLeft) {
  Overwrite(real_ / "new", "x");
  ASSERT_EQ(unlink(Map(real_ / "file", FileUse::kRemove).c_str()), 0);
  EXPECT_EQ(List(real_), (std::set<std::string>{"folder", "new"}));
  ASSERT_EQ(unlink(Map(real_ / "new", FileUse::kRemove).c_str()), 0);
  EXPECT_EQ(List(real_), (std::set<std::string>{"folder"}));
}

TEST_F(OverlayTest, ARenamedFileKeepsItsContent) {
  Rename(real_ / "file", real_ / "moved");
  EXPECT_EQ(See(real_ / "moved"), "before");
  EXPECT_EQ(See(real_ / "file"), "ENOENT");
  EXPECT_TRUE(fs::exists(real_ / "file"));
  EXPECT_FALSE(fs::exists(real_ / "moved"));
}

TEST_F(OverlayTest, ReplacingAFileByRenameIsSeen) {
  Overwrite(real_ / "file.tmp", "checkpoint 2");
  Rename(real_ / "file.tmp", real_ / "file");
  EXPECT_EQ(See(real_ / "file"), "checkpoint 2");
  EXPECT_EQ(ReadFile(real_ / "file"), "before");
}

TEST_F(OverlayTest, ARenamedFolderTakesItsFilesAlong) {
  Rename(real_ / "folder", real_ / "other");
  EXPECT_EQ(See(real_ / "other" / "inner"), "inner");
  EXPECT_EQ(See(real_ / "folder" / "inner"), "ENOENT");
  EXPECT_TRUE(fs::exists(real_ / "folder" / "inner"));
}

TEST_F(OverlayTest, AFolderThatIsNotEmptyCannotBeRemoved) {
  EXPECT_NE(rmdir(Map(real_ / "folder", FileUse::kRemove).c_str()), 0);
  EXPECT_EQ(errno, ENOTEMPTY);
  EXPECT_EQ(See(real_ / "folder" / "inner"), "inner");
}

TEST_F(OverlayTest, AFolderThatWasRemovedAndMadeAgainIsEmpty) {
  ASSERT_EQ(unlink(Map(real_ / "folder" / "inner", FileUse::kRemove).c_str()), 0);
  ASSERT_EQ(rmdir(Map(real_ / "folder", FileUse::kRemove).c_str()), 0);
  EXPECT_EQ(See(real_ / "folder"), "ENOENT");
  ASSERT_EQ(mkdir(Map(real_ / "folder", FileUse::kMakeDir).c_str(), 0777), 0);
  EXPECT_TRUE(List(real_ / "folder").empty());
  EXPECT_TRUE(fs::exists(real_ / "folder" / "inner"));
}

TEST_F(OverlayTest, MakingAFolderThatIsThereFails) {
  Map(real_ / "folder", FileUse::kMakeDir);
  EXPECT_EQ(errno_, EEXIST);
  ASSERT_EQ(mkdir(Map(real_ / "made", FileUse::kMakeDir).c_str(), 0777), 0);
  Overwrite(real_ / "made" / "x", "x");
  EXPECT_EQ(See(real_ / "made" / "x"), "x");
  EXPECT_FALSE(fs::exists(real_ / "made"));
}

TEST_F(OverlayTest, NamesRelativeToAMappedFolderMeanTheSameFile) {
  Overwrite(real_ / "new", "x");
  const int fd = open(Map(real_, FileUse::kRead).c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ReadFile(Map("new", FileUse::kRead, fd)), "x");
  const std::string mapped = Map("file", FileUse::kRead, fd);
  // The listing's entry is an empty file: the name must lead to the real content.
  EXPECT_EQ(ReadFile(mapped), "before") << mapped;
  close(fd);
}

TEST_F(OverlayTest, AFolderThatWasListedAndMovedAwayIsGone) {
  Overwrite(real_ / "folder" / "new", "x");
  EXPECT_EQ(List(real_ / "folder"), (std::set<std::string>{"inner", "new"}));
  Rename(real_ / "folder", real_ / "other");
  EXPECT_EQ(List(real_), (std::set<std::string>{"file", "other"}));
  EXPECT_EQ(List(real_ / "other"), (std::set<std::string>{"inner", "new"}));
}

TEST_F(OverlayTest, TheFolderAboveAMappedFolderIsTheRealOnes) {
  Overwrite(real_ / "folder" / "new", "x");
  const int fd = open(Map(real_ / "folder", FileUse::kRead).c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ReadFile(Map("../file", FileUse::kRead, fd)), "before");
  close(fd);
}

TEST_F(OverlayTest, LinksToFoldersAndFilesLeadToOneCopy) {
  fs::create_symlink(real_ / "folder", real_ / "link");
  fs::create_symlink("file", real_ / "filelink");
  Overwrite(real_ / "link" / "inner", "through the link");
  EXPECT_EQ(See(real_ / "folder" / "inner"), "through the link");
  Overwrite(real_ / "filelink", "through");
  EXPECT_EQ(See(real_ / "file"), "through");
  EXPECT_EQ(See(real_ / "filelink"), "through");
  EXPECT_EQ(ReadFile(real_ / "file"), "before");
}

TEST_F(OverlayTest, LinksThatTheProgramMakesLeadToWhatIsReallyThere) {
  const auto end = [&](const char* name) {
    return overlay_.FollowOwnLinks(AT_FDCWD, (real_ / name).c_str());
  };
  EXPECT_EQ(end("file"), "");  // nothing was written yet
  for (const auto& [text, name] :
       {std::pair{"file", "own"}, {"own", "second"}, {"folder/../file", "dots"}, {"loop", "loop"}})
    ASSERT_EQ(symlink(text, Map(real_ / name, FileUse::kCreate).c_str()), 0);
  EXPECT_EQ(end("own"), real_ / "file");
  EXPECT_EQ(end("second"), real_ / "file");
  EXPECT_EQ(end("dots"), real_ / "file");
  EXPECT_EQ(end("loop"), "");
  EXPECT_EQ(end("file"), "");
  fs::create_symlink("file", real_ / "theirs");
  EXPECT_EQ(end("theirs"), "");
}

TEST_F(OverlayTest, AChangedModeIsTheCopys) {
  ASSERT_EQ(chmod(Map(real_ / "file", FileUse::kMetadata).c_str(), 0600), 0);
  struct stat info;
  ASSERT_EQ(stat(Map(real_ / "file", FileUse::kLook).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((real_ / "file").c_str(), &info), 0);
  EXPECT_NE(info.st_mode & 0777, 0600u);
}

TEST_F(OverlayTest, ACopyHasTheModeOfTheRealFile) {
  ASSERT_EQ(chmod((real_ / "file").c_str(), 0751), 0);
  struct stat info;
  ASSERT_EQ(stat(Map(real_ / "file", FileUse::kWrite).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0751u);
}

TEST_F(OverlayTest, LookingAtAFolderDoesNotListIt) {
  Overwrite(real_ / "new", "x");
  EXPECT_EQ(Map(real_, FileUse::kLook), real_.string());
}

TEST_F(OverlayTest, DevicesAreWrittenAsTheyAre) {
  EXPECT_EQ(Map("/dev/null", FileUse::kWrite), "/dev/null");
  EXPECT_EQ(Map("/proc/self/comm", FileUse::kWrite), "/proc/self/comm");
}

TEST_F(OverlayTest, AFileInSharedMemoryGoesToTheOverlay) {
  EXPECT_NE(Map("/dev/shm/deja-overlay-test", FileUse::kCreate), "/dev/shm/deja-overlay-test");
}

TEST_F(OverlayTest, PathsOfCopiesAreReportedAsTheProgramKnowsThem) {
  auto told = [this](std::string path) {
    path.resize(overlay_.Unmap(path.data(), path.size()));
    return path;
  };
  Overwrite(real_ / "new", "x");
  EXPECT_EQ(told(Map(real_ / "new", FileUse::kRead)), (real_ / "new").string());
  EXPECT_EQ(told(Map(real_, FileUse::kRead)), real_.string());  // a listing's folder
  EXPECT_EQ(told((real_ / "file").string()), (real_ / "file").string());
  EXPECT_EQ(told((root_ / "scratch" / "overlaying").string()),
            (root_ / "scratch" / "overlaying").string());
}

TEST_F(OverlayTest, AFileThatTheRecordedRunMadeIsNotThereYet) {
  overlay_.HideCreated((real_ / "file").string());
  overlay_.HideCreated((real_ / "folder" / ".." / "folder").string());
  overlay_.HideCreated((real_ / "never was there").string());
  overlay_.HideCreated("/");
  overlay_.HideCreated("/dev/null");
  EXPECT_EQ(See(real_ / "file"), "ENOENT");
  EXPECT_EQ(See(real_ / "folder" / "inner"), "ENOENT");
  EXPECT_EQ(Map("/dev/null", FileUse::kRead), "/dev/null");
  EXPECT_TRUE(List(real_).empty());
  ASSERT_EQ(mkdir(Map(real_ / "folder", FileUse::kMakeDir).c_str(), 0777), 0);
  Overwrite(real_ / "file", "made again");
  EXPECT_EQ(See(real_ / "file"), "made again");
  EXPECT_EQ(ReadFile(real_ / "file"), "before");
}

TEST_F(OverlayTest, AForeignFileInAFolderOfTheRunIsNotTheProgramsOwn) {
  const std::string inner = (real_ / "folder" / "inner").string();
  EXPECT_FALSE(overlay_.IsHiddenAsCreated(inner));
  overlay_.HideCreated((real_ / "folder").string());
  EXPECT_TRUE(overlay_.IsHiddenAsCreated(inner));
  EXPECT_FALSE(overlay_.IsHiddenAsCreated((real_ / "file").string()));
  ASSERT_EQ(mkdir(Map(real_ / "folder", FileUse::kMakeDir).c_str(), 0777), 0);
  // It is there as it was, until the program removes it.
  overlay_.Seed(inner, (real_ / "file").c_str());
  EXPECT_EQ(See(inner), "before");
  EXPECT_FALSE(overlay_.IsHiddenAsCreated(inner));
  ASSERT_EQ(unlink(Map(inner, FileUse::kRemove).c_str()), 0);
  EXPECT_EQ(See(inner), "ENOENT");
  EXPECT_FALSE(overlay_.IsHiddenAsCreated(inner));
  EXPECT_TRUE(overlay_.IsHiddenAsCreated((real_ / "folder" / "another").string()));
}

TEST_F(OverlayTest, DotsAndDoubleSlashesAreOneName) {
  Overwrite(real_ / "folder" / ".." / "file", "dots");
  EXPECT_EQ(See((real_ / "file").string()), "dots");
  EXPECT_EQ(See(real_.string() + "//./file"), "dots");
}

TEST_F(OverlayTest, AFifoStandsWhereItIsPut) {
  overlay_.SeedFifo((real_ / "folder" / "fifo").string());
  overlay_.SeedFifo((real_ / "file").string());
  for (const char* name : {"folder/fifo", "file"}) {
    const std::string mapped = Map(real_ / name, FileUse::kRead);
    EXPECT_TRUE(fs::is_fifo(mapped)) << mapped;
    EXPECT_NE(mapped, (real_ / name).string());
  }
  EXPECT_EQ(ReadFile(real_ / "file"), "before");
  // What the program has removed does not come back.
  fs::remove(Map(real_ / "folder" / "fifo", FileUse::kRemove));
  overlay_.SeedFifo((real_ / "folder" / "fifo").string());
  EXPECT_EQ(Map(real_ / "folder" / "fifo", FileUse::kRead), "");
  EXPECT_EQ(errno_, ENOENT);
}

TEST_F(OverlayTest, AFifoOfTheRecordedRunIsHidden) {
  const std::string path = (real_ / "fifo").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  overlay_.HideCreated(path);
  EXPECT_EQ(Map(path, FileUse::kLook), "");
  EXPECT_EQ(errno_, ENOENT);
  EXPECT_EQ(mkfifo(Map(path, FileUse::kCreate).c_str(), 0600), 0);
}

}  // namespace
}  // namespace deja::replayer
