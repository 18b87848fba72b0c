#include "cli/replay/fold/fold_plan.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

std::vector<std::string> Used(uint32_t here, uint32_t recorded,
                              std::vector<std::string> environment) {
  UseDevices(here, recorded, environment);
  return environment;
}

TEST(FoldPlan, DevicesAreGivenInTurn) {
  EXPECT_EQ(Used(1, 8, {"A=1"}), (std::vector<std::string>{"A=1", "DEJA_DEVICES=1/8"}));
  EXPECT_EQ(Used(2, 0, {}), (std::vector<std::string>{"DEJA_DEVICES=2/2"}));
}

TEST(FoldPlan, AListOfOneDeviceIsOneThatIsHere) {
  EXPECT_EQ(Used(1, 1, {"CUDA_VISIBLE_DEVICES=3"}),
            (std::vector<std::string>{"CUDA_VISIBLE_DEVICES=0", "DEJA_DEVICES=1/1"}));
  EXPECT_EQ(Used(2, 1, {"CUDA_VISIBLE_DEVICES=3"}),
            (std::vector<std::string>{"CUDA_VISIBLE_DEVICES=1", "DEJA_DEVICES=1/1"}));
  // However many it names, a program has one.
  EXPECT_EQ(Used(2, 2, {"CUDA_VISIBLE_DEVICES=MIG-2b1c,MIG-77aa"}),
            (std::vector<std::string>{"CUDA_VISIBLE_DEVICES=0", "DEJA_DEVICES=1/1"}));
  EXPECT_EQ(Used(2, 1, {"CUDA_VISIBLE_DEVICES=GPU-8932f937"}),
            (std::vector<std::string>{"CUDA_VISIBLE_DEVICES=0", "DEJA_DEVICES=1/1"}));
}

TEST(FoldPlan, ALongerListNamesThoseThatAreHere) {
  EXPECT_EQ(Used(1, 4, {"CUDA_VISIBLE_DEVICES=4,5,6,7"}),
            (std::vector<std::string>{"CUDA_VISIBLE_DEVICES=0", "DEJA_DEVICES=1/4"}));
  EXPECT_EQ(Used(2, 4, {"CUDA_VISIBLE_DEVICES=4,5,6,7"}),
            (std::vector<std::string>{"CUDA_VISIBLE_DEVICES=0,1", "DEJA_DEVICES=2/4"}));
}

TEST(FoldPlan, AProgramThatWasToHaveNoneHasNone) {
  EXPECT_EQ(Used(2, 4, {"CUDA_VISIBLE_DEVICES="}),
            (std::vector<std::string>{"CUDA_VISIBLE_DEVICES="}));
}

}  // namespace
}  // namespace deja::cli
