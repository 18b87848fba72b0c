#include "common/os/turn_area.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace deja {
namespace {

class TurnAreaTest : public testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  const std::string path_ = testing::TempDir() + "turn-area-" + std::to_string(getpid());
};

TEST_F(TurnAreaTest, AReaderOfTheAreaSeesWhatOthersSay) {
  auto made = TurnArea::Create(path_, 3);
  ASSERT_TRUE(made) << made.error().message;
  auto opened = TurnArea::Open(path_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->ranks(), 3U);
  opened->cell(2).held.store(77);
  made->cell(0).place.store(Place::kOut);
  EXPECT_EQ(made->cell(2).held.load(), 77U);
  EXPECT_EQ(made->cell(1).held.load(), 0U);
  EXPECT_EQ(opened->cell(0).place.load(), Place::kOut);
}

TEST_F(TurnAreaTest, ABellThatHasRungIsNotWaitedFor) {
  auto made = TurnArea::Create(path_, 1);
  ASSERT_TRUE(made);
  auto opened = TurnArea::Open(path_);
  ASSERT_TRUE(opened);
  const uint32_t seen = made->bell().load();
  std::thread other([&] { TurnArea::Ring(opened->bell()); });
  // However often it returns early, or too late.
  while (made->bell().load() == seen) TurnArea::WaitFor(made->bell(), seen, 60000);
  other.join();
  TurnArea::WaitFor(made->bell(), seen, 60000);
}

TEST_F(TurnAreaTest, AnotherFileIsAnError) {
  EXPECT_FALSE(TurnArea::Open(path_));
  std::ofstream(path_) << "short";
  EXPECT_FALSE(TurnArea::Open(path_));
  EXPECT_FALSE(TurnArea::Create(path_, 1)) << "there is a file already";
}

}  // namespace
}  // namespace deja
