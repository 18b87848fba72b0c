// ncclCommInitAll: several ranks in one process, driven by one thread with groups and by a thread
// each. Every process has its own clique; RANK only changes the inputs.
#include <thread>

#include "app.h"

namespace {

constexpr int kDevices = 3;
constexpr size_t kCount = 50001;

using Bytes = std::vector<char>;

uint64_t FromOneThread(ncclComm_t* comms, uint64_t seed) {
  auto inputs = app::Inputs(seed, kDevices, 1, ncclFloat32, kCount);
  std::vector<Bytes> out(kDevices, Bytes(kCount * 4));
  APP_OK(ncclGroupStart());
  for (size_t i = 0; i < kDevices; ++i)
    APP_OK(ncclAllReduce(inputs[i].data(), out[i].data(), kCount, ncclFloat32, ncclSum, comms[i],
                         nullptr));
  APP_OK(ncclGroupEnd());
  auto expected = app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclSum), inputs, kCount);
  for (const Bytes& result : out) APP_CHECK(result == expected);

  // Sends and receives round the ring, all in one group.
  std::vector<Bytes> received(kDevices, Bytes(kCount * 4));
  APP_OK(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    APP_OK(ncclSend(inputs[static_cast<size_t>(i)].data(), kCount, ncclFloat32, (i + 1) % kDevices,
                    comms[i], nullptr));
    APP_OK(ncclRecv(received[static_cast<size_t>(i)].data(), kCount, ncclFloat32,
                    (i + kDevices - 1) % kDevices, comms[i], nullptr));
  }
  APP_OK(ncclGroupEnd());
  for (size_t i = 0; i < kDevices; ++i)
    APP_CHECK(received[i] == inputs[(i + kDevices - 1) % kDevices]);
  return app::Hash(expected);
}

uint64_t FromThreads(ncclComm_t* comms, uint64_t seed) {
  std::vector<std::thread> threads;
  std::vector<uint64_t> hashes(kDevices);
  auto inputs = app::Inputs(seed, kDevices, 2, ncclFloat64, kCount);
  auto expected = app::ReferenceAllReduce(ncclFloat64, app::BuiltIn(ncclMax), inputs, kCount);
  for (size_t i = 0; i < kDevices; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        Bytes out(kCount * 8);
        APP_OK(ncclAllReduce(inputs[i].data(), out.data(), kCount, ncclFloat64, ncclMax, comms[i],
                             nullptr));
        APP_CHECK(out == expected);
        hashes[i] = app::Hash(out, hashes[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t hash : hashes) APP_CHECK(hash == hashes[0]);
  return hashes[0];
}

// One process, several ranks of one communicator, without ncclCommInitAll.
void InitRanksInGroup() {
  ncclUniqueId id;
  APP_OK(ncclGetUniqueId(&id));
  // The id may be that of all processes; make it this one's.
  id.internal[100] = static_cast<char>(1 + app::Rank());
  ncclComm_t comms[kDevices];
  APP_OK(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) APP_OK(ncclCommInitRank(&comms[i], kDevices, id, i));
  APP_OK(ncclGroupEnd());
  int32_t values[kDevices] = {1, 20, 300};
  APP_OK(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i)
    APP_OK(ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, comms[i], nullptr));
  APP_OK(ncclGroupEnd());
  for (int32_t value : values) APP_CHECK(value == 321);

  // All of them are split by one thread.
  ncclComm_t halves[kDevices];
  APP_OK(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i)
    APP_OK(ncclCommSplit(comms[i], i == 0 ? 0 : 1, i, &halves[i], nullptr));
  APP_OK(ncclGroupEnd());
  int count = 0;
  APP_OK(ncclCommCount(halves[0], &count));
  APP_CHECK(count == 1);
  APP_OK(ncclCommCount(halves[2], &count));
  APP_CHECK(count == 2);
  for (int i = 0; i < kDevices; ++i) {
    APP_OK(ncclCommDestroy(halves[i]));
    APP_OK(ncclCommDestroy(comms[i]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  uint64_t seed = arguments.seed + static_cast<uint64_t>(app::Rank());
  ncclComm_t comms[kDevices];
  int devices[kDevices] = {4, 0, 2};
  APP_OK(ncclCommInitAll(comms, kDevices, devices));
  for (int i = 0; i < kDevices; ++i) {
    int rank = -1;
    int device = -1;
    APP_OK(ncclCommUserRank(comms[i], &rank));
    APP_OK(ncclCommCuDevice(comms[i], &device));
    APP_CHECK(rank == i && device == devices[i]);
  }
  app::Print("one thread", FromOneThread(comms, seed));
  app::Print("threads", FromThreads(comms, seed));
  for (ncclComm_t comm : comms) APP_OK(ncclCommDestroy(comm));
  InitRanksInGroup();

  int twice[] = {1, 1};
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclCommInitAll(comms, 2, twice));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommInitAll(comms, 0, nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommInitAll(nullptr, 2, nullptr));
  return app::Finish();
}
