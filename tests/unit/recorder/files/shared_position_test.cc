// Another process is played by a second descriptor of the same open file.
#include "recorder/files/shared_position.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "preload/meet/shared_moves.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "recorder/assembly/whole_recording.h"
#include "recorder/core/recording.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/recorder/core/fake_log.h"

namespace deja::recorder {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr size_t kPiece = 16;

class SharedPositionTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeLog::Reset();
    EventWriter::ForgetThread(preload::Self());
    recording_ = std::make_unique<WholeRecording>(config_, &FakeLog::Create);
    ASSERT_TRUE(recording_->GoLive());
    std::string content;
    for (int i = 0; i < 1000; ++i) content += std::to_string(i * 7919 % 100000) + "\n";
    std::ofstream(path_) << content;
    fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    other_ = dup(fd_);
    ASSERT_GE(other_, 0);
    position_.Begin(preload::PathKey(path_), 0);
  }
  void TearDown() override {
    close(fd_);
    close(other_);
    EventWriter::ForgetThread(preload::Self());
  }

  std::string Read() {
    std::string bytes(kPiece, '\0');
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(read(fd_, bytes.data(), kPiece), 0)));
    return bytes;
  }
  // What this process reads and tells.
  int64_t Tell(const std::string& bytes) {
    const preload::Guard guard;
    if (!position_.IsShared()) return position_.Advance(static_cast<int64_t>(bytes.size()));
    return position_.AfterShared(*recording_, fd_, std::as_bytes(std::span(bytes)), 0,
                                 SharedPosition::Move::kRead);
  }
  void OthersRead(size_t size) const {
    std::string bytes(size, '\0');
    ASSERT_EQ(read(other_, bytes.data(), size), static_cast<ssize_t>(size));
  }
  // Number of the move and position, of what was recorded.
  std::vector<std::pair<uint32_t, int64_t>> Moves() {
    std::vector<std::pair<uint32_t, int64_t>> moves;
    for (const format::Event& event : FakeLog::last->Events()) {
      const auto* input = event.As<format::Input>();
      if (input == nullptr) continue;
      EXPECT_EQ(input->key, preload::PathKey(path_));
      preload::SharedMove move;
      EXPECT_GE(input->data.size(), sizeof move);
      std::memcpy(&move, input->data.data(), sizeof move);
      moves.emplace_back(move.number, input->result);
    }
    return moves;
  }

  TempDir folder_;
  const std::string path_ = folder_.path() + "/data";
  Config config_;
  std::unique_ptr<WholeRecording> recording_;
  SharedPosition position_;
  int fd_ = -1;
  int other_ = -1;
};

TEST_F(SharedPositionTest, NothingIsSaidBeforeAFork) {
  EXPECT_EQ(Tell(Read()), 0);
  EXPECT_EQ(Tell(Read()), 16);
  EXPECT_THAT(Moves(), IsEmpty());
}

TEST_F(SharedPositionTest, TheFirstMoveAfterAForkIsRecorded) {
  Tell(Read());
  CountForkOfInputs();
  EXPECT_EQ(Tell(Read()), 16);
  EXPECT_EQ(Tell(Read()), 32);
  EXPECT_THAT(Moves(), ElementsAre(Pair(1, 16)));
}

TEST_F(SharedPositionTest, AMoveByAnotherProcessIsRecorded) {
  CountForkOfInputs();
  Tell(Read());
  OthersRead(48);
  EXPECT_EQ(Tell(Read()), 64);
  EXPECT_EQ(Tell(Read()), 80);
  EXPECT_THAT(Moves(), ElementsAre(Pair(0, 0), Pair(1, 64)));
}

TEST_F(SharedPositionTest, AMoveBetweenTheReadAndTheLookIsSeen) {
  CountForkOfInputs();
  Tell(Read());
  OthersRead(16);
  Tell(Read());
  const std::string bytes = Read();
  OthersRead(100);
  EXPECT_EQ(Tell(bytes), 48);
  EXPECT_THAT(Moves(), ElementsAre(Pair(0, 0), Pair(1, 32)));
}

TEST_F(SharedPositionTest, APositionThatIsNotFoundIsKept) {
  CountForkOfInputs();
  Tell(Read());
  OthersRead(16);
  Tell(Read());
  EXPECT_EQ(Tell("nowhere at all.."), -1);
  const auto events = FakeLog::last->Events();
  const auto* last = events.back().As<format::Input>();
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->result, -1);
  EXPECT_EQ(last->data.substr(sizeof(preload::SharedMove)), "nowhere at all..");
}

TEST_F(SharedPositionTest, RelativeSeeksAreMoves) {
  CountForkOfInputs();
  Tell(Read());
  OthersRead(16);
  const int64_t at = lseek(fd_, 8, SEEK_CUR);
  const preload::Guard guard;
  position_.AfterSeek(recording_.get(), at, 8, SEEK_CUR);
  EXPECT_EQ(Tell(Read()), 40);
  EXPECT_THAT(Moves(), ElementsAre(Pair(0, 0), Pair(1, 40)));
}

}  // namespace
}  // namespace deja::recorder
