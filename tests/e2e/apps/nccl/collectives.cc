// Every collective, over all data types, operators, in place and out of place, with counts that do
// not divide evenly, and with none at all. Half of the calls have a configuration of their own.
#include "app.h"

namespace {

using app::Operator;

struct Case {
  ncclComm_t comm;
  uint64_t seed;
  ncclDataType_t type;
  size_t count;
  bool in_place;
};

const ncclCollConfig_t* Config() {
  static ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.minCTAs = 1;
  config.algSelection = "ring,tree";
  config.userProfilerTag = 7;
  return &config;
}

// With a configuration where the call is in place.
#define CALL(name, ...) \
  (c.in_place ? name##Config(__VA_ARGS__, nullptr, Config()) : name(__VA_ARGS__, nullptr))

uint64_t AllReduce(const Case& c, ncclRedOp_t op, uint64_t tag) {
  auto inputs = app::Inputs(c.seed, app::World(), tag, c.type, c.count);
  std::vector<char> mine = inputs[static_cast<size_t>(app::Rank())];
  std::vector<char> out(mine.size(), 0x55);
  char* receive = c.in_place ? mine.data() : out.data();
  APP_OK(CALL(ncclAllReduce, mine.data(), receive, c.count, c.type, op, c.comm));
  auto expected = app::ReferenceAllReduce(c.type, app::BuiltIn(op), inputs, c.count);
  APP_CHECK(app::Same(receive, expected.data(), expected.size()));
  return app::Hash(expected);
}

uint64_t Reduce(const Case& c, ncclRedOp_t op, uint64_t tag) {
  int root = static_cast<int>(tag % static_cast<uint64_t>(app::World()));
  auto inputs = app::Inputs(c.seed, app::World(), tag, c.type, c.count);
  std::vector<char> mine = inputs[static_cast<size_t>(app::Rank())];
  std::vector<char> out(mine.size(), 0x55);
  char* receive = c.in_place ? mine.data() : out.data();
  APP_OK(CALL(ncclReduce, mine.data(), receive, c.count, c.type, op, root, c.comm));
  auto expected = app::ReferenceReduce(c.type, app::BuiltIn(op), inputs, 0, c.count, root);
  if (app::Rank() != root) {  // nothing is written elsewhere
    expected = c.in_place ? inputs[static_cast<size_t>(app::Rank())]
                          : std::vector<char>(mine.size(), 0x55);
  }
  APP_CHECK(app::Same(receive, expected.data(), expected.size()));
  return app::Hash(expected);
}

uint64_t ReduceScatter(const Case& c, ncclRedOp_t op, uint64_t tag) {
  auto n = static_cast<size_t>(app::World());
  auto rank = static_cast<size_t>(app::Rank());
  auto inputs = app::Inputs(c.seed, app::World(), tag, c.type, c.count * n);
  std::vector<char> mine = inputs[rank];
  std::vector<char> out(c.count * app::SizeOf(c.type), 0x55);
  char* receive = c.in_place ? mine.data() + rank * out.size() : out.data();
  APP_OK(CALL(ncclReduceScatter, mine.data(), receive, c.count, c.type, op, c.comm));
  auto expected =
      app::ReferenceReduce(c.type, app::BuiltIn(op), inputs, rank * c.count, c.count, app::Rank());
  APP_CHECK(app::Same(receive, expected.data(), expected.size()));
  return app::Hash(expected);
}

uint64_t AllGather(const Case& c, uint64_t tag) {
  auto n = static_cast<size_t>(app::World());
  auto rank = static_cast<size_t>(app::Rank());
  auto inputs = app::Inputs(c.seed, app::World(), tag, c.type, c.count);
  std::vector<char> expected;
  for (const auto& input : inputs) expected.insert(expected.end(), input.begin(), input.end());
  std::vector<char> out(expected.size(), 0x55);
  const char* send = inputs[rank].data();
  if (c.in_place) {
    app::Copy(out.data() + rank * (out.size() / n), send, out.size() / n);
    send = out.data() + rank * (out.size() / n);
  }
  APP_OK(CALL(ncclAllGather, send, out.data(), c.count, c.type, c.comm));
  APP_CHECK(out == expected);
  return app::Hash(out);
}

uint64_t Broadcast(const Case& c, uint64_t tag) {
  int root = static_cast<int>(tag % static_cast<uint64_t>(app::World()));
  auto expected = app::Input(c.seed, root, tag, c.type, c.count);
  auto mine = app::Input(c.seed, app::Rank(), tag, c.type, c.count);
  std::vector<char> out(mine.size(), 0x55);
  if (c.in_place && tag % 2 == 0) {
    APP_OK(ncclBcast(mine.data(), c.count, c.type, root, c.comm, nullptr));
    out = mine;
  } else if (c.in_place) {
    APP_OK(CALL(ncclBroadcast, mine.data(), mine.data(), c.count, c.type, root, c.comm));
    out = mine;
  } else {
    // Only the root's send buffer counts.
    const void* send = app::Rank() == root ? mine.data() : nullptr;
    APP_OK(ncclBroadcast(send, out.data(), c.count, c.type, root, c.comm, nullptr));
  }
  APP_CHECK(out == expected);
  return app::Hash(out);
}

uint64_t AlltoAll(const Case& c, uint64_t tag) {
  auto n = static_cast<size_t>(app::World());
  auto rank = static_cast<size_t>(app::Rank());
  auto inputs = app::Inputs(c.seed, app::World(), tag, c.type, c.count * n);
  size_t block = c.count * app::SizeOf(c.type);
  std::vector<char> expected;
  for (const auto& input : inputs)
    expected.insert(expected.end(), input.begin() + static_cast<ptrdiff_t>(rank * block),
                    input.begin() + static_cast<ptrdiff_t>((rank + 1) * block));
  std::vector<char> out(expected.size(), 0x55);
  APP_OK(CALL(ncclAlltoAll, inputs[rank].data(), out.data(), c.count, c.type, c.comm));
  APP_CHECK(out == expected);
  return app::Hash(out);
}

uint64_t GatherAndScatter(const Case& c, uint64_t tag) {
  int root = static_cast<int>(tag % static_cast<uint64_t>(app::World()));
  auto n = static_cast<size_t>(app::World());
  auto rank = static_cast<size_t>(app::Rank());
  bool is_root = app::Rank() == root;
  auto inputs = app::Inputs(c.seed, app::World(), tag, c.type, c.count);
  size_t block = c.count * app::SizeOf(c.type);
  std::vector<char> all(is_root ? n * block : 0, 0x55);
  std::vector<char> mine = inputs[rank];
  const char* send = mine.data();
  if (c.in_place && is_root) {
    app::Copy(all.data() + rank * block, mine.data(), block);
    send = all.data() + rank * block;
  }
  APP_OK(CALL(ncclGather, send, is_root ? all.data() : nullptr, c.count, c.type, root, c.comm));
  for (size_t r = 0; is_root && r < n; ++r)
    APP_CHECK(app::Same(all.data() + r * block, inputs[r].data(), block));

  // And back again, to the ranks in reverse order.
  if (is_root) {
    for (size_t r = 0; r < n; ++r)
      app::Copy(all.data() + r * block, inputs[n - 1 - r].data(), block);
  }
  std::vector<char> back(block, 0x55);
  char* receive = c.in_place && is_root ? all.data() + rank * block : back.data();
  APP_OK(CALL(ncclScatter, is_root ? all.data() : nullptr, receive, c.count, c.type, root, c.comm));
  APP_CHECK(app::Same(receive, inputs[n - 1 - rank].data(), block));
  return app::Hash(receive, block);
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t comm = app::InitWorld();
  app::AgreeOnSeed(&arguments, comm);
  uint64_t tag = 0;
  for (ncclDataType_t type : app::kAllTypes) {
    uint64_t hash = 0;
    for (size_t count : {size_t{0}, size_t{1}, size_t{13}, size_t{1000}, size_t{20011}}) {
      for (bool in_place : {false, true}) {
        Case c{comm, arguments.seed, type, count, in_place};
        for (ncclRedOp_t op : app::kAllOps) {
          if (count > 1000 && (op != ncclSum || app::SizeOf(type) == 2)) continue;
          hash = hash * 31 + AllReduce(c, op, ++tag);
          hash = hash * 31 + Reduce(c, op, ++tag);
          hash = hash * 31 + ReduceScatter(c, op, ++tag);
        }
        hash = hash * 31 + AllGather(c, ++tag);
        hash = hash * 31 + Broadcast(c, ++tag);
        hash = hash * 31 + AlltoAll(c, ++tag);
        hash = hash * 31 + GatherAndScatter(c, ++tag);
      }
    }
    app::Print(app::TypeName(type), hash);
  }
  APP_OK(ncclCommDestroy(comm));
  return app::Finish();
}
