// Groups: deferred to the outermost end, nested, over several communicators, in an order that would
// deadlock if the calls ran one after the other.
#include <algorithm>

#include "app.h"

namespace {

using Bytes = std::vector<char>;

size_t Own() {
  return static_cast<size_t>(app::Rank());
}

// Nothing may have happened before the outermost end.
uint64_t Nested(ncclComm_t comm, uint64_t seed) {
  auto inputs = app::Inputs(seed, app::World(), 1, ncclFloat32, 500);
  Bytes sum(inputs[0].size(), 0x55);
  Bytes most(inputs[0].size(), 0x55);
  const Bytes untouched = sum;
  APP_OK(ncclGroupStart());
  APP_OK(ncclAllReduce(inputs[Own()].data(), sum.data(), 500, ncclFloat32, ncclSum, comm, nullptr));
  APP_OK(ncclGroupStart());
  APP_OK(
      ncclAllReduce(inputs[Own()].data(), most.data(), 500, ncclFloat32, ncclMax, comm, nullptr));
  APP_OK(ncclGroupEnd());
  if (app::World() > 1) APP_CHECK(sum == untouched && most == untouched);
  APP_OK(ncclGroupEnd());
  APP_CHECK(sum == app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclSum), inputs, 500));
  APP_CHECK(most == app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclMax), inputs, 500));
  return app::Hash(most, app::Hash(sum));
}

// Many collectives of different kinds in one group, in order on one communicator.
uint64_t Mixed(ncclComm_t comm, uint64_t seed) {
  auto n = static_cast<size_t>(app::World());
  auto inputs = app::Inputs(seed, app::World(), 2, ncclInt32, 3000 * n);
  Bytes reduced(3000 * 4);
  Bytes gathered(3000 * 4 * n);
  Bytes block(3000 * 4);
  const Bytes& mine = inputs[Own()];
  APP_OK(ncclGroupStart());
  APP_OK(ncclReduceScatter(mine.data(), block.data(), 3000, ncclInt32, ncclSum, comm, nullptr));
  APP_OK(ncclAllReduce(mine.data(), reduced.data(), 3000, ncclInt32, ncclProd, comm, nullptr));
  APP_OK(ncclAllGather(mine.data(), gathered.data(), 3000, ncclInt32, comm, nullptr));
  APP_OK(ncclAllReduce(mine.data(), nullptr, 0, ncclInt32, ncclSum, comm, nullptr));
  APP_OK(ncclGroupEnd());
  APP_CHECK(block == app::ReferenceReduce(ncclInt32, app::BuiltIn(ncclSum), inputs, Own() * 3000,
                                          3000, app::Rank()));
  APP_CHECK(reduced == app::ReferenceAllReduce(ncclInt32, app::BuiltIn(ncclProd), inputs, 3000));
  for (size_t r = 0; r < n; ++r)
    APP_CHECK(std::memcmp(gathered.data() + r * 12000, inputs[r].data(), 12000) == 0);
  return app::Hash(gathered, app::Hash(reduced, app::Hash(block)));
}

// Every rank lists its sends and receives in an order of its own, larger than any buffer in
// between.
uint64_t AnyOrder(ncclComm_t comm, uint64_t seed) {
  constexpr size_t kCount = 300000;
  int n = app::World();
  std::vector<Bytes> to;
  std::vector<Bytes> from;
  for (int peer = 0; peer < n; ++peer) {
    to.push_back(
        app::Input(seed, app::Rank(), 100 + static_cast<uint64_t>(peer), ncclFloat32, kCount));
    from.emplace_back(kCount * 4);
  }
  struct Transfer {
    int peer;
    bool send;
  };
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < n; ++peer) {
    transfers.push_back({peer, true});
    transfers.push_back({peer, false});
  }
  app::Numbers numbers(seed, Own(), 7);
  for (size_t i = transfers.size(); i > 1; --i)
    std::swap(transfers[i - 1], transfers[numbers.Next() % i]);
  APP_OK(ncclGroupStart());
  for (const Transfer& transfer : transfers) {
    auto peer = static_cast<size_t>(transfer.peer);
    if (transfer.send) {
      APP_OK(ncclSend(to[peer].data(), kCount, ncclFloat32, transfer.peer, comm, nullptr));
    } else {
      APP_OK(ncclRecv(from[peer].data(), kCount, ncclFloat32, transfer.peer, comm, nullptr));
    }
  }
  APP_OK(ncclGroupEnd());
  uint64_t hash = 0;
  for (int peer = 0; peer < n; ++peer) {
    APP_CHECK(from[static_cast<size_t>(peer)] ==
              app::Input(seed, peer, 100 + Own(), ncclFloat32, kCount));
    hash = app::Hash(from[static_cast<size_t>(peer)], hash);
  }
  return hash;
}

// The ranks name two communicators in opposite orders, one of them busy with sends and receives.
uint64_t TwoCommunicators(ncclComm_t one, ncclComm_t two, uint64_t seed) {
  constexpr size_t kCount = 200000;
  auto inputs = app::Inputs(seed, app::World(), 3, ncclFloat32, kCount);
  Bytes first(kCount * 4);
  Bytes second(kCount * 4);
  Bytes received(kCount * 4);
  int next = (app::Rank() + 1) % app::World();
  int previous = (app::Rank() + app::World() - 1) % app::World();
  auto reduce_one = [&] {
    APP_OK(ncclAllReduce(inputs[Own()].data(), first.data(), kCount, ncclFloat32, ncclSum, one,
                         nullptr));
  };
  auto reduce_two = [&] {
    APP_OK(ncclAllReduce(inputs[Own()].data(), second.data(), kCount, ncclFloat32, ncclMin, two,
                         nullptr));
  };
  auto pass_on = [&] {
    APP_OK(ncclSend(inputs[Own()].data(), kCount, ncclFloat32, next, one, nullptr));
    APP_OK(ncclRecv(received.data(), kCount, ncclFloat32, previous, one, nullptr));
  };
  APP_OK(ncclGroupStart());
  if (app::Rank() % 2 == 0) {
    reduce_one();
    reduce_two();
    pass_on();
  } else {
    pass_on();
    reduce_two();
    reduce_one();
  }
  APP_OK(ncclGroupEnd());
  APP_CHECK(first == app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclSum), inputs, kCount));
  APP_CHECK(second == app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclMin), inputs, kCount));
  APP_CHECK(received == inputs[static_cast<size_t>(previous)]);
  return app::Hash(second, app::Hash(first));
}

void Simulated(ncclComm_t comm) {
  float value = 1;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  APP_OK(ncclGroupStart());
  APP_OK(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr));
  APP_OK(ncclGroupSimulateEnd(&info));
  APP_CHECK(value == 1);
  APP_CHECK(info.estimatedTime >= 0);
  // What was simulated is not pending.
  APP_OK(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr));
  APP_CHECK(value == static_cast<float>(app::World()));
}

void Empty() {
  APP_OK(ncclGroupStart());
  APP_OK(ncclGroupStart());
  APP_OK(ncclGroupEnd());
  APP_OK(ncclGroupEnd());
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclGroupEnd());
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t one = app::InitWorld();
  ncclComm_t two = app::InitWorld();
  app::AgreeOnSeed(&arguments, one);
  Empty();
  app::Print("nested", Nested(one, arguments.seed));
  app::Print("mixed", Mixed(one, arguments.seed));
  app::Print("any order", AnyOrder(one, arguments.seed));
  app::Print("two communicators", TwoCommunicators(one, two, arguments.seed));
  Simulated(two);
  APP_OK(ncclGroupStart());
  APP_OK(ncclCommDestroy(one));
  APP_OK(ncclCommDestroy(two));
  APP_OK(ncclGroupEnd());
  return app::Finish();
}
