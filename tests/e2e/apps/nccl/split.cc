// ncclCommSplit: colours, keys, no colour, splits of splits, several in one group.
#include "app.h"

namespace {

uint64_t Sum(ncclComm_t comm, uint64_t value) {
  uint64_t sum = 0;
  APP_OK(ncclAllReduce(&value, &sum, 1, ncclUint64, ncclSum, comm, nullptr));
  return sum;
}

int RankIn(ncclComm_t comm) {
  int rank = -1;
  APP_OK(ncclCommUserRank(comm, &rank));
  return rank;
}

int SizeOf(ncclComm_t comm) {
  int size = -1;
  APP_OK(ncclCommCount(comm, &size));
  return size;
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t world = app::InitWorld();
  app::AgreeOnSeed(&arguments, world);
  int rank = app::Rank();
  int n = app::World();

  // Odd and even, in reverse order.
  ncclComm_t half;
  APP_OK(ncclCommSplit(world, rank % 2, -rank, &half, nullptr));
  int members = (n + 1 - rank % 2) / 2;
  APP_CHECK(SizeOf(half) == members);
  APP_CHECK(RankIn(half) == members - 1 - rank / 2);
  uint64_t expected = 0;
  for (int r = rank % 2; r < n; r += 2) expected += app::Numbers(arguments.seed, r, 1).Next();
  uint64_t sum = Sum(half, app::Numbers(arguments.seed, rank, 1).Next());
  APP_CHECK(sum == expected);
  app::Print("halves", sum);

  // Equal keys keep the parent's order; the last rank stays outside.
  ncclComm_t most = reinterpret_cast<ncclComm_t>(1);
  bool outside = rank == n - 1;
  APP_OK(ncclCommSplit(world, outside ? NCCL_SPLIT_NOCOLOR : 7, 0, &most, nullptr));
  if (outside) {
    APP_CHECK(most == nullptr);
  } else {
    APP_CHECK(SizeOf(most) == n - 1 && RankIn(most) == rank);
    app::Print("all but one", Sum(most, app::Numbers(arguments.seed, rank, 2).Next()));
  }

  // Data and pipeline parallel groups at once: two splits in one group.
  ncclComm_t data;
  ncclComm_t pipe;
  APP_OK(ncclGroupStart());
  APP_OK(ncclCommSplit(world, rank / 2, rank, &data, nullptr));
  APP_OK(ncclCommSplit(world, rank % 2, rank, &pipe, nullptr));
  APP_OK(ncclGroupEnd());
  APP_CHECK(RankIn(data) == rank % 2 && RankIn(pipe) == rank / 2);
  app::Print("data", Sum(data, app::Numbers(arguments.seed, rank, 3).Next()));
  app::Print("pipe", Sum(pipe, app::Numbers(arguments.seed, rank, 4).Next()));

  // A split of a split, while the parents are in use; then the parents go first.
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = "grandchild";
  ncclComm_t grandchild;
  APP_OK(ncclCommSplit(half, 0, 0, &grandchild, &config));
  APP_CHECK(SizeOf(grandchild) == members);
  APP_OK(ncclCommDestroy(half));
  APP_OK(ncclCommDestroy(world));
  app::Print("grandchild", Sum(grandchild, app::Numbers(arguments.seed, rank, 5).Next()));

  if (most != nullptr) APP_OK(ncclCommDestroy(most));
  APP_OK(ncclCommDestroy(data));
  APP_OK(ncclCommDestroy(pipe));
  APP_OK(ncclCommDestroy(grandchild));
  return app::Finish();
}
