// What a replay says of files, against a recording that is written here.
#include "replayer/files/input_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/replayer/written_rank.h"

namespace deja::replayer {
namespace {

TEST(InputFilesTest, AFileOfTheReplaysOwnIsNoneOfTheRecordedOnes) {
  constexpr uint64_t kDevice = 7;
  constexpr uint64_t kInode = 9;
  preload::Self().engine_state = nullptr;  // of another test's session
  WrittenRank rank;
  {
    WrittenRank::Thread thread = rank.Begin("0");
    format::InputFile file;
    file.file = 1;
    file.path = "/data";
    file.mode = S_IFREG | 0644;
    file.device = kDevice;
    file.inode = kInode;
    thread.Add(file);
  }
  const Session* session = rank.Open();
  InputServer server;
  const auto told = [&](uint64_t device, uint64_t inode) {
    struct stat info {};
    info.st_dev = device;
    info.st_ino = inode;
    server.TellApart(*session, info);
    EXPECT_EQ(info.st_dev, device);
    return info.st_ino;
  };
  EXPECT_NE(told(kDevice, kInode), kInode);
  EXPECT_EQ(told(kDevice, kInode), told(kDevice, kInode));
  EXPECT_EQ(told(kDevice, kInode + 1), kInode + 1);
  EXPECT_EQ(told(kDevice + 1, kInode), kInode);
}

}  // namespace
}  // namespace deja::replayer
