// ncclCommGrow: a communicator of all ranks but the last takes the last one in.
#include "app.h"

namespace {

uint64_t Sum(ncclComm_t comm, uint64_t value) {
  uint64_t sum = 0;
  APP_OK(ncclAllReduce(&value, &sum, 1, ncclUint64, ncclSum, comm, nullptr));
  return sum;
}

}  // namespace

// Needs at least 2 ranks.
int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t world = app::InitWorld();
  app::AgreeOnSeed(&arguments, world);
  int rank = app::Rank();
  int n = app::World();
  APP_CHECK(n >= 2);
  bool newcomer = rank == n - 1;
  int root = n >= 3 ? 1 : 0;

  ncclComm_t small = nullptr;
  APP_OK(ncclCommSplit(world, newcomer ? NCCL_SPLIT_NOCOLOR : 0, rank, &small, nullptr));

  // The root's id reaches the newcomer through the world.
  ncclUniqueId id{};
  if (rank == root) {
    APP_OK(ncclCommGetUniqueId(small, &id));
    ncclUniqueId second;
    APP_EXPECT_RESULT(ncclInvalidUsage, ncclCommGetUniqueId(small, &second));
  }
  APP_OK(ncclBcast(&id, sizeof id, ncclUint8, root, world, nullptr));

  ncclComm_t grown = nullptr;
  if (newcomer) {
    APP_OK(ncclCommGrow(nullptr, n, &id, rank, &grown, nullptr));
  } else {
    APP_EXPECT_RESULT(ncclInvalidArgument,
                      ncclCommGrow(small, n - 1, nullptr, -1, &grown, nullptr));
    APP_OK(ncclCommGrow(small, n, rank == root ? &id : nullptr, -1, &grown, nullptr));
  }
  int count = 0;
  int new_rank = -1;
  APP_OK(ncclCommCount(grown, &count));
  APP_OK(ncclCommUserRank(grown, &new_rank));
  APP_CHECK(count == n && new_rank == rank);
  uint64_t expected = 0;
  for (int r = 0; r < n; ++r) expected += app::Numbers(arguments.seed, r, 1).Next();
  uint64_t sum = Sum(grown, app::Numbers(arguments.seed, rank, 1).Next());
  APP_CHECK(sum == expected);
  app::Print("grown", sum);
  if (small != nullptr) {
    app::Print("small", Sum(small, app::Numbers(arguments.seed, rank, 2).Next()));
    APP_OK(ncclCommDestroy(small));
  }
  APP_OK(ncclCommDestroy(grown));
  APP_OK(ncclCommDestroy(world));
  return app::Finish();
}
