// Several communicators in one process at a time, made and ended in various orders, of ids that are
// handed over by the program.
#include "app.h"

namespace {

uint64_t Sum(ncclComm_t comm, uint64_t value) {
  uint64_t sum = 0;
  APP_OK(ncclAllReduce(&value, &sum, 1, ncclUint64, ncclSum, comm, nullptr));
  return sum;
}

uint64_t ExpectedSum(uint64_t seed, uint64_t tag) {
  uint64_t sum = 0;
  for (int r = 0; r < app::World(); ++r)
    sum += app::Numbers(seed, static_cast<uint64_t>(r), tag).Next();
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  auto rank = static_cast<uint64_t>(app::Rank());
  ncclComm_t first = app::InitWorld();
  app::AgreeOnSeed(&arguments, first);
  uint64_t seed = arguments.seed;

  int count = 0;
  int user_rank = -1;
  int device = -1;
  APP_OK(ncclCommCount(first, &count));
  APP_OK(ncclCommUserRank(first, &user_rank));
  APP_OK(ncclCommCuDevice(first, &device));
  APP_CHECK(count == app::World() && user_rank == app::Rank() && device >= 0);

  // Many, one after the other: nothing may pile up.
  for (int i = 0; i < 20; ++i) {
    ncclComm_t comm = app::InitWorld();
    auto n = static_cast<uint64_t>(app::World());
    APP_CHECK(Sum(comm, rank) == n * (n - 1) / 2);
    APP_OK(ncclCommDestroy(comm));
  }

  // Rank 0 alone draws the ids of the next three and hands them over.
  ncclUniqueId ids[3];
  if (app::Rank() == 0)
    for (ncclUniqueId& id : ids) APP_OK(ncclGetUniqueId(&id));
  APP_OK(ncclBroadcast(ids, ids, sizeof ids, ncclUint8, 0, first, nullptr));
  APP_CHECK(std::memcmp(&ids[0], &ids[1], sizeof ids[0]) != 0);
  ncclComm_t more[3];
  for (int i = 0; i < 3; ++i)
    APP_OK(ncclCommInitRank(&more[i], app::World(), ids[i], app::World() - 1 - app::Rank()));

  // Used in an order that changes from round to round; each keeps its own order.
  uint64_t total = 0;
  for (uint64_t round = 0; round < 12; ++round) {
    uint64_t value = app::Numbers(seed, rank, round).Next();
    for (uint64_t k = 0; k < 3; ++k) total += Sum(more[(round + k) % 3], value + k * round);
    uint64_t sum = Sum(first, value);
    APP_CHECK(sum == ExpectedSum(seed, round));
    total += sum;
  }
  app::Print("interleaved", total);

  // Ranks are reversed in these.
  int reversed = -1;
  APP_OK(ncclCommUserRank(more[1], &reversed));
  APP_CHECK(reversed == app::World() - 1 - app::Rank());
  uint64_t from_last = rank;
  APP_OK(ncclBcast(&from_last, 1, ncclUint64, 0, more[1], nullptr));
  APP_CHECK(from_last == static_cast<uint64_t>(app::World() - 1));

  APP_OK(ncclCommDestroy(more[1]));
  APP_CHECK(Sum(more[2], 1) == static_cast<uint64_t>(app::World()));
  APP_OK(ncclCommFinalize(more[2]));
  APP_OK(ncclCommDestroy(more[2]));
  APP_OK(ncclCommDestroy(first));
  APP_CHECK(Sum(more[0], 2) == 2 * static_cast<uint64_t>(app::World()));
  APP_OK(ncclCommDestroy(more[0]));

  // A communicator of one rank needs no other.
  ncclComm_t alone;
  APP_OK(ncclCommInitRank(&alone, 1, ids[0], 0));
  float x = 3;
  float y = 0;
  APP_OK(ncclAllReduce(&x, &y, 1, ncclFloat32, ncclAvg, alone, nullptr));
  APP_CHECK(y == 3);
  APP_OK(ncclCommDestroy(alone));
  return app::Finish();
}
