// Buffers of many chunks: every byte checked, pieces that do not divide evenly.
#include "app.h"

namespace {

using Bytes = std::vector<char>;

size_t Own() {
  return static_cast<size_t>(app::Rank());
}

uint64_t AllReduce(ncclComm_t comm, uint64_t seed, uint64_t tag, ncclDataType_t type,
                   size_t count) {
  auto inputs = app::Inputs(seed, app::World(), tag, type, count);
  auto expected = app::ReferenceAllReduce(type, app::BuiltIn(ncclSum), inputs, count);
  Bytes out(expected.size());
  APP_OK(ncclAllReduce(inputs[Own()].data(), out.data(), count, type, ncclSum, comm, nullptr));
  APP_CHECK(out == expected);
  APP_OK(ncclAllReduce(inputs[Own()].data(), inputs[Own()].data(), count, type, ncclSum, comm,
                       nullptr));
  APP_CHECK(inputs[Own()] == expected);
  return app::Hash(out);
}

uint64_t ReduceScatterThenGather(ncclComm_t comm, uint64_t seed, uint64_t tag, size_t count) {
  auto n = static_cast<size_t>(app::World());
  auto inputs = app::Inputs(seed, app::World(), tag, ncclFloat32, count * n);
  Bytes expected;
  for (size_t r = 0; r < n; ++r) {
    auto block = app::ReferenceReduce(ncclFloat32, app::BuiltIn(ncclSum), inputs, r * count, count,
                                      static_cast<int>(r));
    expected.insert(expected.end(), block.begin(), block.end());
  }
  Bytes out(expected.size());
  char* block = out.data() + Own() * count * 4;
  APP_OK(
      ncclReduceScatter(inputs[Own()].data(), block, count, ncclFloat32, ncclSum, comm, nullptr));
  APP_OK(ncclAllGather(block, out.data(), count, ncclFloat32, comm, nullptr));
  APP_CHECK(out == expected);
  return app::Hash(out);
}

uint64_t ReduceThenBroadcast(ncclComm_t comm, uint64_t seed, uint64_t tag, size_t count) {
  int root = app::World() - 1;
  auto inputs = app::Inputs(seed, app::World(), tag, ncclFloat64, count);
  auto expected = app::ReferenceReduce(ncclFloat64, app::BuiltIn(ncclAvg), inputs, 0, count, root);
  Bytes out(expected.size());
  APP_OK(ncclReduce(inputs[Own()].data(), out.data(), count, ncclFloat64, ncclAvg, root, comm,
                    nullptr));
  APP_OK(ncclBcast(out.data(), count, ncclFloat64, root, comm, nullptr));
  APP_CHECK(out == expected);
  return app::Hash(out);
}

// Much more than a channel holds, in both directions at once.
uint64_t AllToAll(ncclComm_t comm, uint64_t seed, uint64_t tag, size_t count) {
  auto n = static_cast<size_t>(app::World());
  auto inputs = app::Inputs(seed, app::World(), tag, ncclInt64, count * n);
  size_t block = count * 8;
  Bytes expected;
  for (const auto& input : inputs)
    expected.insert(expected.end(), input.begin() + static_cast<ptrdiff_t>(Own() * block),
                    input.begin() + static_cast<ptrdiff_t>((Own() + 1) * block));
  Bytes out(expected.size());
  APP_OK(ncclAlltoAll(inputs[Own()].data(), out.data(), count, ncclInt64, comm, nullptr));
  APP_CHECK(out == expected);
  return app::Hash(out);
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t comm = app::InitWorld();
  app::AgreeOnSeed(&arguments, comm);
  auto n = static_cast<size_t>(app::World());
  uint64_t seed = arguments.seed;
  // More than one loop of 2 MiB chunks, with a short last one.
  app::Print("all-reduce float32", AllReduce(comm, seed, 1, ncclFloat32, n * 524288 + 100003));
  app::Print("all-reduce float16", AllReduce(comm, seed, 2, ncclFloat16, 200001));
  app::Print("all-reduce uint8", AllReduce(comm, seed, 3, ncclUint8, 500003));
  app::Print("reduce-scatter, all-gather", ReduceScatterThenGather(comm, seed, 4, 200003));
  app::Print("reduce, broadcast", ReduceThenBroadcast(comm, seed, 5, 150001));
  app::Print("all-to-all", AllToAll(comm, seed, 6, 100003));
  APP_OK(ncclCommDestroy(comm));
  return app::Finish();
}
