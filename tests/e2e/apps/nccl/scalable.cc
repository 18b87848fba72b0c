// ncclCommInitRankScalable: one communicator of several ids.
#include "app.h"

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t world = app::InitWorld();
  app::AgreeOnSeed(&arguments, world);
  int n = app::World();
  auto rank = static_cast<uint64_t>(app::Rank());
  for (int id_count = 1; id_count <= n; ++id_count) {
    std::vector<ncclUniqueId> ids(static_cast<size_t>(id_count));
    if (rank == 0)
      for (ncclUniqueId& id : ids) APP_OK(ncclGetUniqueId(&id));
    APP_OK(ncclBcast(ids.data(), ids.size() * sizeof ids[0], ncclUint8, 0, world, nullptr));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = nullptr;
    APP_OK(ncclCommInitRankScalable(&comm, n, app::Rank(), id_count, ids.data(), &config));
    uint64_t value = app::Numbers(arguments.seed, rank, static_cast<uint64_t>(id_count)).Next();
    uint64_t sum = 0;
    uint64_t expected = 0;
    for (int r = 0; r < n; ++r)
      expected +=
          app::Numbers(arguments.seed, static_cast<uint64_t>(r), static_cast<uint64_t>(id_count))
              .Next();
    APP_OK(ncclAllReduce(&value, &sum, 1, ncclUint64, ncclSum, comm, nullptr));
    APP_CHECK(sum == expected);
    app::Print("sum", sum);
    APP_OK(ncclCommDestroy(comm));
  }
  ncclComm_t none = nullptr;
  ncclUniqueId id{};
  APP_EXPECT_RESULT(ncclInvalidArgument,
                    ncclCommInitRankScalable(&none, n, app::Rank(), 0, &id, nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument,
                    ncclCommInitRankScalable(&none, n, app::Rank(), n + 1, &id, nullptr));
  APP_OK(ncclCommDestroy(world));
  return app::Finish();
}
