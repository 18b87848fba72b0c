#include "replayer/forks/fork_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace deja::replayer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ForkFilesTest : public testing::Test {
 protected:
  ForkFilesTest() {
    // What runs the tests may leave its log open.
    close_range(STDERR_FILENO + 1, ~0u, 0);
    char pattern[] = "/tmp/deja-image-files-XXXXXX";
    root_ = fs::canonical(mkdtemp(pattern));
    fs::create_directories(root_ / "scratch");
    std::ofstream(root_ / "input") << "0123456789";
    files_.NoteInherited();
  }
  ~ForkFilesTest() override {
    for (const int fd : opened_) close(fd);
    fs::remove_all(root_);
  }

  int Open(const fs::path& path, int flags) {
    opened_.push_back(open(path.c_str(), flags | O_CLOEXEC, 0600));
    EXPECT_GE(opened_.back(), 0) << path;
    return opened_.back();
  }
  std::string Note() { return files_.Note((root_ / "scratch").string()).text(); }
  // What `image` returns in a fork of this process.
  template <typename Image>
  static int InImage(Image image) {
    const pid_t pid = fork();
    if (pid == 0) _exit(image());
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path root_;
  ForkFiles files_;
  std::vector<int> opened_;
};

TEST_F(ForkFilesTest, AnImageHasPositionsOfItsOwn) {
  const int input = Open(root_ / "input", O_RDONLY);
  const int output = Open(root_ / "scratch" / "out", O_RDWR | O_CREAT | O_TRUNC);
  ASSERT_EQ(write(output, "abcdef", 6), 6);
  lseek(input, 3, SEEK_SET);
  ASSERT_EQ(Note(), "");
  lseek(input, 5, SEEK_SET);  // the program goes on
  const int problem = InImage([&] {
    if (!files_.OpenAgain().empty()) return 1;
    char byte = 0;
    if (read(input, &byte, 1) != 1 || byte != '3') return 2;
    if (lseek(output, 0, SEEK_CUR) != 6) return 3;
    if ((fcntl(input, F_GETFD) & FD_CLOEXEC) == 0) return 4;
    return write(output, "g", 1) == 1 ? 0 : 5;
  });
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(lseek(input, 0, SEEK_CUR), 5) << "the image has moved the program's";
  EXPECT_EQ(lseek(output, 0, SEEK_CUR), 6);
}

TEST_F(ForkFilesTest, NumbersOfOneFileStayOne) {
  const int first = Open(root_ / "input", O_RDONLY);
  const int second = dup(first);
  opened_.push_back(second);
  ASSERT_EQ(Note(), "");
  const int problem = InImage([&] {
    if (!files_.OpenAgain().empty()) return 1;
    lseek(first, 7, SEEK_SET);
    return lseek(second, 0, SEEK_CUR) == 7 ? 0 : 2;
  });
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(lseek(first, 0, SEEK_CUR), 0);
}

TEST_F(ForkFilesTest, AnInputThatWasRemovedIsOpenedAgain) {
  const int input = Open(root_ / "input", O_RDONLY);
  lseek(input, 4, SEEK_SET);
  fs::remove(root_ / "input");
  ASSERT_EQ(Note(), "");
  const int problem = InImage([&] {
    char byte = 0;
    return files_.OpenAgain().empty() && read(input, &byte, 1) == 1 && byte == '4' ? 0 : 1;
  });
  EXPECT_EQ(problem, 0);
}

TEST_F(ForkFilesTest, AnOwnFileThatIsGoneIsReported) {
  Open(root_ / "scratch" / "out", O_RDWR | O_CREAT);
  ASSERT_EQ(Note(), "");
  fs::remove(root_ / "scratch" / "out");
  EXPECT_THAT(files_.OpenAgain().text(), HasSubstr("/scratch/out: No such file"));
}

TEST_F(ForkFilesTest, AChangeAfterwardsIsSeen) {
  const int input = Open(root_ / "input", O_RDONLY);
  ASSERT_EQ(Note(), "");
  EXPECT_TRUE(files_.IsAsNoted());
  lseek(input, 3, SEEK_SET);
  EXPECT_FALSE(files_.IsAsNoted());
  lseek(input, 0, SEEK_SET);
  EXPECT_TRUE(files_.IsAsNoted());
  Open(root_ / "input", O_RDONLY);
  EXPECT_FALSE(files_.IsAsNoted());
  close(opened_.back());
  opened_.pop_back();
  EXPECT_TRUE(files_.IsAsNoted());
}

TEST_F(ForkFilesTest, AChildOfAnotherThreadIsSeen) {
  std::thread([] {
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    EXPECT_STREQ(SharedWithOthers("/nowhere").text(), "it has child processes");
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }).join();
}

TEST_F(ForkFilesTest, AResourceThatCannotBeHadTwiceIsNamed) {
  const int outside = Open(root_ / "input", O_RDWR);
  EXPECT_EQ(Note(), "it writes to " + (root_ / "input").string());
  close(outside);
  opened_.pop_back();
  EXPECT_EQ(Note(), "");
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  opened_.insert(opened_.end(), {ends[0], ends[1]});
  EXPECT_THAT(Note(), HasSubstr("it has socket:["));
  ForkFiles born_with_it;
  born_with_it.NoteInherited();
  EXPECT_TRUE(born_with_it.Note((root_ / "scratch").string()).empty());
}

std::string Shared(const std::string& scratch) {
  return SharedWithOthers(scratch).text();
}

void NameWhatIsShared() {
  ASSERT_EQ(Shared("/nowhere"), "");
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_EQ(Shared("/nowhere"), "it has child processes");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_THAT(Shared("/nowhere"), HasSubstr("it writes to shared memory ("));
  munmap(memory, 4096);
  const std::string scratch = std::filesystem::temp_directory_path() / "deja-pipes-XXXXXX";
  std::vector<char> folder(scratch.c_str(), scratch.c_str() + scratch.size() + 1);
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string table = std::string(folder.data()) + kPipesFile;
  const int fd = open(table.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_THAT(Shared("/nowhere"), HasSubstr(kPipesFile));
  EXPECT_EQ(Shared(folder.data()), "");
  munmap(memory, 4096);
  close(fd);
  std::filesystem::remove_all(folder.data());
  itimerval timer{};
  timer.it_value.tv_sec = 1000;
  ASSERT_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
  EXPECT_EQ(Shared("/nowhere"), "it has a timer");
  timer.it_value.tv_sec = 0;
  setitimer(ITIMER_REAL, &timer, nullptr);
  EXPECT_EQ(Shared("/nowhere"), "");
}

TEST(SharedWithOthersTest, ChildrenMemoryAndTimersAreNamed) {
  // A process that executes the program again: other tests leave shared memory mapped in theirs, as
  // a rank does that takes turns.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        NameWhatIsShared();
        exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace deja::replayer
