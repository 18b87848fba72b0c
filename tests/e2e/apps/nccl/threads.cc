// A process whose threads each have a communicator of their own, all busy at once.
#include <thread>

#include "app.h"

namespace {

constexpr int kThreads = 4;

uint64_t Work(ncclComm_t comm, uint64_t seed, uint64_t thread) {
  uint64_t hash = 0;
  auto rank = static_cast<size_t>(app::Rank());
  int next = (app::Rank() + 1) % app::World();
  int previous = (app::Rank() + app::World() - 1) % app::World();
  for (uint64_t round = 0; round < 25; ++round) {
    uint64_t tag = thread * 1000 + round;
    size_t count = app::Numbers(seed, 0, tag).Next() % 30000 + 1;
    auto inputs = app::Inputs(seed, app::World(), tag, ncclInt32, count);
    std::vector<char> out(count * 4);
    std::vector<char> received(count * 4);
    APP_OK(ncclGroupStart());
    APP_OK(
        ncclAllReduce(inputs[rank].data(), out.data(), count, ncclInt32, ncclSum, comm, nullptr));
    APP_OK(ncclSend(inputs[rank].data(), count, ncclInt32, next, comm, nullptr));
    APP_OK(ncclRecv(received.data(), count, ncclInt32, previous, comm, nullptr));
    APP_OK(ncclGroupEnd());
    APP_CHECK(out == app::ReferenceAllReduce(ncclInt32, app::BuiltIn(ncclSum), inputs, count));
    APP_CHECK(received == inputs[static_cast<size_t>(previous)]);
    hash = app::Hash(out, hash);
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t world = app::InitWorld();
  app::AgreeOnSeed(&arguments, world);
  ncclComm_t comms[kThreads];
  for (ncclComm_t& comm : comms) APP_OK(ncclCommSplit(world, 0, app::Rank(), &comm, nullptr));
  std::vector<std::thread> threads;
  uint64_t hashes[kThreads];
  for (uint64_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { hashes[i] = Work(comms[i], arguments.seed, i); });
  for (std::thread& thread : threads) thread.join();
  for (uint64_t hash : hashes) app::Print("thread", hash);
  for (ncclComm_t comm : comms) APP_OK(ncclCommDestroy(comm));
  APP_OK(ncclCommDestroy(world));
  return app::Finish();
}
