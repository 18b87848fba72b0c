#include "replayer/plan/payload_source.h"

#include <gtest/gtest.h>

#include "api/nccl_table.h"
#include "preload/process/guard.h"
#include "tests/support/expected_leaks.h"
#include "tests/unit/replayer/fake_rank.h"

// A source is never destroyed, as in a program (see NewSource).
DEJA_EXPECTED_LEAKS("leak:deja::replayer::PayloadSource\n")

namespace deja::replayer {
namespace {

constexpr uint32_t kOp = static_cast<uint32_t>(api::NcclApi::ncclAllReduce);

std::vector<std::byte> Bytes(size_t n, int value) {
  return std::vector<std::byte>(n, static_cast<std::byte>(value));
}

struct Recording {
  FakeRank rank;
  std::unique_ptr<ReplayPlan> plan;

  // Operation i's result is 1000 + i bytes of value i.
  explicit Recording(int operations) {
    for (int i = 1; i <= operations; ++i) {
      rank.Operation(0, kOp, 1, static_cast<uint64_t>(i));
      format::CallResults results;
      results.comm = 1;
      results.comm_seq = static_cast<uint64_t>(i);
      format::Tensor tensor;
      tensor.hash = rank.Payload(Bytes(1000 + static_cast<size_t>(i), i));
      results.outputs.push_back(tensor);
      rank.Add(0, results);
    }
    plan = std::move(*ReplayPlan::Build(rank, {[](uint32_t) { return CallKind::kOperation; },
                                               [](uint32_t) { return false; }, api::InputKindOf}));
  }
};

// As in a program, where its thread lives as long as the process does.
PayloadSource& NewSource(const Recording& recording) {
  static std::vector<std::unique_ptr<PayloadSource>>* kept =
      new std::vector<std::unique_ptr<PayloadSource>>();
  return *kept->emplace_back(std::make_unique<PayloadSource>(recording.rank, *recording.plan));
}

TEST(PayloadSourceTest, ServesEveryResultWithAndWithoutReadingAhead) {
  for (bool ahead : {false, true}) {
    Recording recording(50);
    PayloadSource& source = NewSource(recording);
    if (ahead) {
      preload::Guard guard;
      source.Start();
    }
    for (int i = 1; i <= 50; ++i) {
      std::vector<std::byte> out(1000 + static_cast<size_t>(i));
      const uint32_t call = recording.plan->FindOperation(1, static_cast<uint64_t>(i));
      ASSERT_TRUE(source.ReadOutput(call, 0, out).has_value());
      EXPECT_EQ(out, Bytes(out.size(), i));
    }
    source.StopReadingAhead();
    EXPECT_FALSE(source.reads_ahead());
  }
}

TEST(PayloadSourceTest, ServesResultsInAnotherOrderThanRecorded) {
  Recording recording(20);
  PayloadSource& source = NewSource(recording);
  {
    preload::Guard guard;
    source.Start();
  }
  for (int i = 20; i >= 1; --i) {
    if (i == 10) source.StopReadingAhead();  // on the way
    std::vector<std::byte> out(1000 + static_cast<size_t>(i));
    const uint32_t call = recording.plan->FindOperation(1, static_cast<uint64_t>(i));
    ASSERT_TRUE(source.ReadOutput(call, 0, out).has_value());
    EXPECT_EQ(out, Bytes(out.size(), i));
  }
}

TEST(PayloadSourceTest, ABufferOfAnotherSizeIsAnError) {
  Recording recording(1);
  PayloadSource source(recording.rank, *recording.plan);
  std::vector<std::byte> out(10);
  EXPECT_FALSE(source.ReadOutput(recording.plan->FindOperation(1, 1), 0, out).has_value());
}

TEST(PayloadSourceTest, APayloadThatWasNotKeptIsNotThere) {
  Recording recording(1);
  PayloadSource source(recording.rank, *recording.plan);
  Hash128 other;
  other.bytes[0] = 1;
  EXPECT_FALSE(source.Read(other, 8).has_value());
  EXPECT_FALSE(source.SizeOf(Hash128{}).has_value());
}

}  // namespace
}  // namespace deja::replayer
