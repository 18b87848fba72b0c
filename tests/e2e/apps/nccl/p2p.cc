// Send and receive: first in first out for each peer, sizes from nothing to more than fits in
// between. To other ranks and to the rank itself, without and within groups.
#include "app.h"

namespace {

using Bytes = std::vector<char>;

size_t Own() {
  return static_cast<size_t>(app::Rank());
}

// Rank r sends to r+1 as soon as it has received from r-1: no group needed.
uint64_t Chain(ncclComm_t comm, uint64_t seed) {
  constexpr size_t kCount = 100003;
  Bytes data = app::Input(seed, 0, 1, ncclFloat32, kCount);
  Bytes received(data.size());
  if (app::Rank() > 0) {
    APP_OK(ncclRecv(received.data(), kCount, ncclFloat32, app::Rank() - 1, comm, nullptr));
    APP_CHECK(received == data);
  }
  if (app::Rank() + 1 < app::World())
    APP_OK(ncclSend(data.data(), kCount, ncclFloat32, app::Rank() + 1, comm, nullptr));
  return app::Hash(data);
}

// Many messages of many sizes to one peer arrive in order and are not mixed up.
uint64_t InOrder(ncclComm_t comm, uint64_t seed) {
  int next = (app::Rank() + 1) % app::World();
  int previous = (app::Rank() + app::World() - 1) % app::World();
  std::vector<Bytes> sent;
  std::vector<Bytes> received;
  app::Numbers numbers(seed, 0, 2);
  std::vector<size_t> counts = {0, 1};
  for (int i = 0; i < 30; ++i) counts.push_back(numbers.Next() % 70000);
  for (size_t i = 0; i < counts.size(); ++i) {
    sent.push_back(app::Input(seed, app::Rank(), 10 + i, ncclInt32, counts[i]));
    received.emplace_back(counts[i] * 4);
  }
  APP_OK(ncclGroupStart());
  for (auto& message : sent)
    APP_OK(ncclSend(message.data(), message.size() / 4, ncclInt32, next, comm, nullptr));
  for (auto& message : received)
    APP_OK(ncclRecv(message.data(), message.size() / 4, ncclInt32, previous, comm, nullptr));
  APP_OK(ncclGroupEnd());
  uint64_t hash = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    APP_CHECK(received[i] == app::Input(seed, previous, 10 + i, ncclInt32, counts[i]));
    hash = app::Hash(received[i], hash);
  }
  return hash;
}

uint64_t ToSelf(ncclComm_t comm, uint64_t seed) {
  Bytes first = app::Input(seed, app::Rank(), 3, ncclUint8, 1000);
  Bytes second = app::Input(seed, app::Rank(), 4, ncclUint8, 2000);
  Bytes got_first(1000);
  Bytes got_second(2000);
  APP_OK(ncclGroupStart());
  APP_OK(ncclRecv(got_first.data(), 1000, ncclUint8, app::Rank(), comm, nullptr));
  APP_OK(ncclSend(first.data(), 1000, ncclUint8, app::Rank(), comm, nullptr));
  APP_OK(ncclSend(second.data(), 2000, ncclUint8, app::Rank(), comm, nullptr));
  APP_OK(ncclRecv(got_second.data(), 2000, ncclUint8, app::Rank(), comm, nullptr));
  APP_OK(ncclGroupEnd());
  APP_CHECK(got_first == first && got_second == second);
  // Nothing matches these.
  APP_OK(ncclGroupStart());
  APP_OK(ncclSend(first.data(), 1, ncclUint8, app::Rank(), comm, nullptr));
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclGroupEnd());
  APP_EXPECT_RESULT(ncclInvalidUsage,
                    ncclRecv(got_first.data(), 1, ncclUint8, app::Rank(), comm, nullptr));
  return app::Hash(got_second, app::Hash(got_first));
}

// A pipeline of two stages and several micro-batches, between pairs of ranks.
uint64_t Pipeline(ncclComm_t comm, uint64_t seed) {
  constexpr size_t kCount = 5000;
  int peer = app::Rank() ^ 1;
  if (peer >= app::World()) return 0;
  uint64_t hash = 0;
  Bytes back(kCount * 2);
  for (uint64_t batch = 0; batch < 20; ++batch) {
    Bytes forward = app::Input(seed, app::Rank() & ~1, 50 + batch, ncclFloat16, kCount);
    Bytes gradient = app::Input(seed, app::Rank() | 1, 80 + batch, ncclFloat16, kCount);
    Bytes received(kCount * 2);
    if (app::Rank() % 2 == 0) {
      APP_OK(ncclSend(forward.data(), kCount, ncclFloat16, peer, comm, nullptr));
      APP_OK(ncclRecv(received.data(), kCount, ncclFloat16, peer, comm, nullptr));
      APP_CHECK(received == gradient);
    } else {
      APP_OK(ncclRecv(received.data(), kCount, ncclFloat16, peer, comm, nullptr));
      APP_CHECK(received == forward);
      APP_OK(ncclSend(gradient.data(), kCount, ncclFloat16, peer, comm, nullptr));
    }
    hash = app::Hash(received, hash);
  }
  return hash;
}

// Sends and receives between collectives do not disturb them.
uint64_t Interleaved(ncclComm_t comm, uint64_t seed) {
  uint64_t total = 0;
  for (uint64_t round = 0; round < 10; ++round) {
    uint64_t mine = app::Numbers(seed, Own(), 200 + round).Next() >> 8;
    uint64_t sum = 0;
    uint64_t expected = 0;
    for (int r = 0; r < app::World(); ++r)
      expected += app::Numbers(seed, static_cast<uint64_t>(r), 200 + round).Next() >> 8;
    APP_OK(ncclAllReduce(&mine, &sum, 1, ncclUint64, ncclSum, comm, nullptr));
    APP_CHECK(sum == expected);
    if (app::Rank() == 0) {
      for (int r = 1; r < app::World(); ++r)
        APP_OK(ncclSend(&sum, 1, ncclUint64, r, comm, nullptr));
    } else {
      uint64_t got = 0;
      APP_OK(ncclRecv(&got, 1, ncclUint64, 0, comm, nullptr));
      APP_CHECK(got == sum);
    }
    total += sum;
  }
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t comm = app::InitWorld();
  app::AgreeOnSeed(&arguments, comm);
  app::Print("chain", Chain(comm, arguments.seed));
  app::Print("in order", InOrder(comm, arguments.seed));
  app::Print("to self", ToSelf(comm, arguments.seed));
  app::Print("pipeline", Pipeline(comm, arguments.seed));
  app::Print("interleaved", Interleaved(comm, arguments.seed));
  APP_OK(ncclCommDestroy(comm));
  return app::Finish();
}
