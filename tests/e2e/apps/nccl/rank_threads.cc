// Ranks that are threads of one process: each makes its own communicator and draws its inputs. With
// --meet they meet at a lock, too, and what is reduced depends on which of them comes first.
#include <mutex>
#include <thread>

#include "app.h"

namespace {

constexpr int kRanks = 4;
constexpr int kRounds = 12;
constexpr size_t kCount = 3001;

struct Shared {
  std::mutex mutex;
  std::vector<uint64_t> order;  // ranks, as they came
};

uint64_t Work(int rank, const ncclUniqueId& id, const app::Arguments& arguments, Shared& shared) {
  ncclComm_t comm = nullptr;
  APP_OK(ncclCommInitRank(&comm, kRanks, id, rank));
  uint64_t seed = arguments.seed + static_cast<uint64_t>(app::Rank());
  if (arguments.unseeded) seed += std::random_device()();
  app::Numbers numbers(seed, static_cast<uint64_t>(rank), 7);
  uint64_t hash = 0;
  for (int round = 0; round < kRounds; ++round) {
    size_t place = 0;
    {
      std::lock_guard lock(shared.mutex);
      place = shared.order.size();
      shared.order.push_back(static_cast<uint64_t>(rank));
    }
    std::vector<uint64_t> in(kCount, numbers.Next() % 1000);
    if (arguments.Has("--meet")) in[static_cast<size_t>(rank)] += place;
    std::vector<uint64_t> out(kCount);
    APP_OK(ncclAllReduce(in.data(), out.data(), kCount, ncclUint64, ncclSum, comm, nullptr));
    const auto* bytes = reinterpret_cast<const char*>(out.data());
    hash = app::Hash(std::vector<char>(bytes, bytes + kCount * sizeof(uint64_t)), hash);
  }
  APP_OK(ncclCommDestroy(comm));
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  const app::Arguments arguments = app::Parse(argc, argv);
  ncclUniqueId id;
  APP_OK(ncclGetUniqueId(&id));
  // The id may be that of all processes; make it this one's.
  id.internal[100] = static_cast<char>(1 + app::Rank());
  Shared shared;
  std::vector<std::thread> threads;
  std::vector<uint64_t> hashes(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back(
        [&, rank] { hashes[static_cast<size_t>(rank)] = Work(rank, id, arguments, shared); });
  for (std::thread& thread : threads) thread.join();
  for (uint64_t hash : hashes) APP_CHECK(hash == hashes[0]);
  app::Print("ranks", hashes[0]);
  return app::Finish();
}
