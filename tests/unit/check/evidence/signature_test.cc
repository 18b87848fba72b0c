#include "check/evidence/signature.h"

#include <gtest/gtest.h>

#include "api/c10d_table.h"
#include "api/nccl_table.h"

namespace deja::check {
namespace {

format::CallEnter Nccl(api::NcclApi api, std::initializer_list<uint64_t> args) {
  format::CallEnter enter;
  enter.api = static_cast<uint32_t>(api);
  for (const uint64_t arg : args) enter.args.push_back(arg);
  return enter;
}
format::CallEnter C10d(api::C10dApi api, std::initializer_list<uint64_t> args) {
  format::CallEnter enter;
  enter.api = static_cast<uint32_t>(api);
  for (const uint64_t arg : args) enter.args.push_back(arg);
  return enter;
}

TEST(SignatureTest, NamesWhatRanksMustAgreeOn) {
  const auto reduce = SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 25632, 7, 0, 1, 0}));
  ASSERT_TRUE(reduce);
  EXPECT_EQ(Describe(*reduce), "AllReduce float32[25632] sum");
  const auto copy = SignatureOf(Nccl(api::NcclApi::ncclBroadcast, {1, 2, 1, 4, 3, 1, 0}));
  ASSERT_TRUE(copy);
  EXPECT_EQ(Describe(*copy), "Broadcast int64[1] root 3");
}

TEST(SignatureTest, BuffersAreNoneOfIt) {
  const auto a = SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 8, 7, 0, 1, 0}));
  const auto b = SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {3, 4, 8, 7, 0, 2, 5}));
  EXPECT_TRUE(Fit(*a, *b));
}

TEST(SignatureTest, SaysWhatDiffersFirst) {
  const Signature a = *SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 8, 7, 0, 1, 0}));
  const Signature type = *SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 8, 8, 0, 1, 0}));
  const Signature count = *SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 9, 7, 0, 1, 0}));
  const Signature op = *SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 8, 7, 2, 1, 0}));
  EXPECT_EQ(FirstDifference(a, type), Field::kType);
  EXPECT_EQ(FirstDifference(a, count), Field::kCount);
  EXPECT_EQ(FirstDifference(a, op), Field::kReduction);
  EXPECT_EQ(FirstDifference(a, a), Field::kNothing);
}

TEST(SignatureTest, OperatorsOfTheProgramHaveNumbersOfTheirRank) {
  const Signature a = *SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 8, 7, 5, 1, 0}));
  const Signature b = *SignatureOf(Nccl(api::NcclApi::ncclAllReduce, {1, 2, 8, 7, 6, 1, 0}));
  EXPECT_TRUE(Fit(a, b));
}

// The root of torch's broadcast reads, the others write.
TEST(SignatureTest, TheRootOfABroadcastFitsTheOthers) {
  const auto root = SignatureOf(C10d(api::C10dApi::c10d_broadcast, {1, 8, 0, 0, 7, 0, 1}));
  const auto other = SignatureOf(C10d(api::C10dApi::c10d_broadcast, {0, 0, 1, 8, 7, 0, 1}));
  ASSERT_TRUE(root && other);
  EXPECT_TRUE(Fit(*root, *other));
  EXPECT_EQ(Describe(*root), "Broadcast float32[8] root 0");
}

TEST(SignatureTest, PartsOfAnAllToAllNeedNotBeEqual) {
  const auto a = SignatureOf(C10d(api::C10dApi::c10d_alltoall, {1, 8, 2, 4, 7, 1}));
  const auto b = SignatureOf(C10d(api::C10dApi::c10d_alltoall, {1, 2, 2, 6, 7, 1}));
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(Fit(*a, *b));
}

TEST(SignatureTest, CallsThatAreNoOperationHaveNone) {
  EXPECT_FALSE(SignatureOf(Nccl(api::NcclApi::ncclGroupStart, {})));
  EXPECT_FALSE(SignatureOf(Nccl(api::NcclApi::ncclCommDestroy, {1})));
}

}  // namespace
}  // namespace deja::check
