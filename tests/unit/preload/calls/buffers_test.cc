#include "preload/calls/buffers.h"

#include <gtest/gtest.h>

#include <string_view>

#include "api/nccl_table.h"

namespace deja::preload {
namespace {

constexpr int kRanks = 4;
constexpr uint64_t kSend = 0x1000;
constexpr uint64_t kRecv = 0x2000;
constexpr uint64_t kFloat32 = 7;

// The arguments of a call as the hooks would pass them: buffers at kSend and kRecv, ten floats,
// root 1.
struct Example {
  const api::ApiInfo* info;
  uint64_t args[api::kMaxArgs] = {};

  explicit Example(std::string_view name) : info(api::FindNccl(name)) {
    for (uint32_t i = 0; i < info->param_count; ++i) {
      api::Role role = info->params[i].role;
      if (role == api::Role::kCount) args[i] = 10;
      if (role == api::Role::kDType) args[i] = kFloat32;
      if (role == api::Role::kRoot) args[i] = 1;
      if (IsInputRole(role)) args[i] = kSend;
      if (IsOutputRole(role)) args[i] = kRecv;
    }
  }
  void Set(api::Role role, uint64_t value) { args[info->Find(role)] = value; }
  BufferUse In(int rank) const { return InputBuffer(*info, args, kRanks, rank); }
  BufferUse Out(int rank) const { return OutputBuffer(*info, args, kRanks, rank); }
};

struct Sizes {
  const char* name;
  uint64_t in_root, out_root;    // elements on rank 1, the root
  uint64_t in_other, out_other;  // elements on rank 2
};

TEST(BuffersTest, SizesFollowFromTheRoles) {
  constexpr Sizes kSizes[] = {
      {"ncclAllReduce", 10, 10, 10, 10},
      {"ncclReduce", 10, 10, 10, 0},
      {"ncclBroadcast", 10, 10, 0, 10},
      {"ncclBcast", 10, 10, 0, 10},
      {"ncclReduceScatter", 40, 10, 40, 10},
      {"ncclAllGather", 10, 40, 10, 40},
      {"ncclAlltoAll", 40, 40, 40, 40},
      {"ncclGather", 10, 40, 10, 0},
      {"ncclScatter", 40, 10, 0, 10},
      {"ncclSend", 10, 0, 10, 0},
      {"ncclRecv", 0, 10, 0, 10},
      {"ncclPutSignal", 10, 0, 10, 0},
      {"ncclSignal", 0, 0, 0, 0},
      {"ncclGroupEnd", 0, 0, 0, 0},
      {"ncclCommInitRank", 0, 0, 0, 0},
  };
  for (const Sizes& sizes : kSizes) {
    SCOPED_TRACE(sizes.name);
    Example call(sizes.name);
    EXPECT_EQ(call.In(1).elements, sizes.in_root);
    EXPECT_EQ(call.Out(1).elements, sizes.out_root);
    EXPECT_EQ(call.In(2).elements, sizes.in_other);
    EXPECT_EQ(call.Out(2).elements, sizes.out_other);
    for (int rank : {1, 2}) {
      for (const BufferUse& use : {call.In(rank), call.Out(rank)}) {
        EXPECT_EQ(use.bytes, use.elements * 4);
        EXPECT_EQ(use.data != nullptr, use.elements != 0);
        if (!use.empty()) {
          EXPECT_EQ(use.dtype, kFloat32);
        }
      }
    }
  }
}

TEST(BuffersTest, EveryCallThatMovesDataHasABuffer) {
  for (const api::ApiInfo& info : api::NcclTable()) {
    if (info.klass != api::ApiClass::kCollective && info.klass != api::ApiClass::kP2p) continue;
    Example call(info.name);
    EXPECT_FALSE(call.In(1).empty() && call.Out(1).empty()) << info.name;
  }
}

TEST(BuffersTest, BroadcastInPlaceReadsTheSameMemory) {
  Example call("ncclBcast");
  EXPECT_EQ(call.In(1).data, call.Out(1).data);
  EXPECT_EQ(call.In(1).arg, call.Out(1).arg);
}

TEST(BuffersTest, ElementSizesOfEveryType) {
  constexpr uint64_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  for (uint64_t dtype = 0; dtype < std::size(kBytes); ++dtype) {
    Example call("ncclAllReduce");
    call.Set(api::Role::kDType, dtype);
    EXPECT_EQ(call.In(0).bytes, 10 * kBytes[dtype]) << dtype;
  }
}

TEST(BuffersTest, NothingThatCannotBeRead) {
  Example unknown_type("ncclAllReduce");
  unknown_type.Set(api::Role::kDType, 12);
  EXPECT_TRUE(unknown_type.In(0).empty());

  Example negative_type("ncclAllReduce");
  negative_type.Set(api::Role::kDType, ~0ull);
  EXPECT_TRUE(negative_type.In(0).empty());

  Example nothing("ncclAllReduce");
  nothing.Set(api::Role::kCount, 0);
  EXPECT_TRUE(nothing.In(0).empty());

  Example too_much("ncclAllGather");
  too_much.Set(api::Role::kCount, 1ull << 62);
  EXPECT_TRUE(too_much.In(0).empty());
  EXPECT_TRUE(too_much.Out(0).empty());

  Example no_pointer("ncclAllReduce");
  no_pointer.Set(api::Role::kIn, 0);
  EXPECT_TRUE(no_pointer.In(0).empty());
  EXPECT_FALSE(no_pointer.Out(0).empty());
}

}  // namespace
}  // namespace deja::preload
