// ncclCommShrink: without some ranks, after they are gone in good order, twice, and while an
// operation hangs (NCCL_SHRINK_ABORT).
#include <thread>

#include "app.h"

namespace {

uint64_t Sum(ncclComm_t comm, uint64_t value) {
  uint64_t sum = 0;
  APP_OK(ncclAllReduce(&value, &sum, 1, ncclUint64, ncclSum, comm, nullptr));
  return sum;
}

}  // namespace

// Needs at least 3 ranks.
int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t world = app::InitWorld();
  app::AgreeOnSeed(&arguments, world);
  int rank = app::Rank();
  int n = app::World();
  APP_CHECK(n >= 3);

  // Without rank 1.
  ncclComm_t shrunk = nullptr;
  int exclude[] = {1};
  if (rank == 1) {
    ncclComm_t refused = nullptr;
    APP_EXPECT_RESULT(ncclInvalidArgument,
                      ncclCommShrink(world, exclude, 1, &refused, nullptr, NCCL_SHRINK_DEFAULT));
    APP_CHECK(refused == nullptr);
  } else {
    APP_OK(ncclCommShrink(world, exclude, 1, &shrunk, nullptr, NCCL_SHRINK_DEFAULT));
    int count = 0;
    int new_rank = -1;
    APP_OK(ncclCommCount(shrunk, &count));
    APP_OK(ncclCommUserRank(shrunk, &new_rank));
    APP_CHECK(count == n - 1 && new_rank == (rank == 0 ? 0 : rank - 1));
    uint64_t expected = 0;
    for (int r = 0; r < n; ++r)
      if (r != 1) expected += app::Numbers(arguments.seed, r, 1).Next();
    uint64_t sum = Sum(shrunk, app::Numbers(arguments.seed, rank, 1).Next());
    APP_CHECK(sum == expected);
    app::Print("shrunk", sum);
  }

  // The parent still works for all.
  app::Print("parent", Sum(world, app::Numbers(arguments.seed, rank, 2).Next()));

  // Rank 1 never joins this; the others give it up and go on without it.
  ncclComm_t again = nullptr;
  if (rank != 1) {
    std::thread stuck([&] {
      uint64_t value = 1;
      uint64_t sum = 0;
      ncclResult_t result = ncclAllReduce(&value, &sum, 1, ncclUint64, ncclSum, world, nullptr);
      APP_CHECK(result != ncclSuccess);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    APP_OK(ncclCommShrink(world, exclude, 1, &again, nullptr, NCCL_SHRINK_ABORT));
    stuck.join();
    app::Print("again", Sum(again, app::Numbers(arguments.seed, rank, 3).Next()));
    APP_OK(ncclCommDestroy(again));
    APP_OK(ncclCommDestroy(shrunk));
  }
  APP_OK(ncclCommDestroy(world));
  return app::Finish();
}
