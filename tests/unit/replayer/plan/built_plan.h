// What the tests of plans share: the calls that they make, and a plan of a recorded rank.
#ifndef DEJA_TESTS_UNIT_REPLAYER_PLAN_BUILT_PLAN_H_
#define DEJA_TESTS_UNIT_REPLAYER_PLAN_BUILT_PLAN_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "api/libc_table.h"
#include "api/nccl_table.h"
#include "replayer/plan/replay_plan.h"
#include "tests/unit/replayer/fake_rank.h"

namespace deja::replayer {

using api::NcclApi;

inline constexpr uint32_t kPlanOp = static_cast<uint32_t>(NcclApi::ncclAllReduce);
inline constexpr uint32_t kInit = static_cast<uint32_t>(NcclApi::ncclCommInitRank);
inline constexpr uint32_t kDestroy = static_cast<uint32_t>(NcclApi::ncclCommDestroy);
inline constexpr uint32_t kGroupEnd = static_cast<uint32_t>(NcclApi::ncclGroupEnd);
inline constexpr uint32_t kGetRandom = static_cast<uint32_t>(api::LibcApi::kgetrandom);
inline constexpr uint32_t kGetPid = static_cast<uint32_t>(api::LibcApi::kgetpid);

inline CallKind KindOfTest(uint32_t api) {
  if (api == kPlanOp) return CallKind::kOperation;
  if (api == kGroupEnd) return CallKind::kGroup;
  return CallKind::kOrdered;
}

inline bool GivesUpInTest(uint32_t api) {
  return api == static_cast<uint32_t>(NcclApi::ncclCommAbort);
}

inline std::unique_ptr<ReplayPlan> Build(const FakeRank& rank) {
  auto plan = ReplayPlan::Build(rank, {KindOfTest, GivesUpInTest, api::InputKindOf});
  EXPECT_TRUE(plan.has_value());
  return plan ? std::move(*plan) : nullptr;
}

}  // namespace deja::replayer

#endif  // DEJA_TESTS_UNIT_REPLAYER_PLAN_BUILT_PLAN_H_
