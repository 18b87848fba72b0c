// Non-blocking communicators: every call may return ncclInProgress; ncclCommGetAsyncError says when
// it is done.
#include <thread>

#include "app.h"

namespace {

using Bytes = std::vector<char>;

// What a call returned, made final.
ncclResult_t Wait(ncclComm_t comm, ncclResult_t result) {
  APP_CHECK(result == ncclSuccess || result == ncclInProgress);
  ncclResult_t state = ncclInProgress;
  while (true) {
    APP_OK(ncclCommGetAsyncError(comm, &state));
    if (state != ncclInProgress) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

#define APP_DONE(comm, call) APP_CHECK(Wait(comm, call) == ncclSuccess)

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  auto rank = static_cast<size_t>(app::Rank());
  int n = app::World();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId id;
  APP_OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  ncclResult_t result = ncclCommInitRankConfig(&comm, n, id, app::Rank(), &config);
  APP_CHECK(comm != nullptr);
  APP_DONE(comm, result);
  if (arguments.unseeded)
    APP_DONE(comm, ncclBcast(&arguments.seed, 1, ncclUint64, 0, comm, nullptr));

  constexpr size_t kCount = 30011;
  auto inputs = app::Inputs(arguments.seed, n, 1, ncclFloat32, kCount);
  auto expected = app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclSum), inputs, kCount);
  for (int round = 0; round < 10; ++round) {
    Bytes out(kCount * 4);
    APP_DONE(comm, ncclAllReduce(inputs[rank].data(), out.data(), kCount, ncclFloat32, ncclSum,
                                 comm, nullptr));
    APP_CHECK(out == expected);
  }
  app::Print("all-reduce", app::Hash(expected));

  // A group is in progress as a whole.
  Bytes received(kCount * 4);
  Bytes reduced(kCount * 4);
  int next = (app::Rank() + 1) % n;
  int previous = (app::Rank() + n - 1) % n;
  APP_OK(ncclGroupStart());
  APP_OK(ncclSend(inputs[rank].data(), kCount, ncclFloat32, next, comm, nullptr));
  APP_OK(ncclRecv(received.data(), kCount, ncclFloat32, previous, comm, nullptr));
  APP_OK(ncclAllReduce(inputs[rank].data(), reduced.data(), kCount, ncclFloat32, ncclSum, comm,
                       nullptr));
  APP_DONE(comm, ncclGroupEnd());
  APP_CHECK(received == inputs[static_cast<size_t>(previous)] && reduced == expected);
  app::Print("group", app::Hash(received));

  // The parent shows the progress of a split; the child inherits that it does not block.
  ncclComm_t child = nullptr;
  APP_DONE(comm, ncclCommSplit(comm, 0, -app::Rank(), &child, nullptr));
  APP_CHECK(child != nullptr);
  uint64_t value = app::Numbers(arguments.seed, rank, 2).Next();
  uint64_t sum = 0;
  APP_DONE(child, ncclAllReduce(&value, &sum, 1, ncclUint64, ncclSum, child, nullptr));
  app::Print("child", sum);

  // Errors come at once.
  APP_EXPECT_RESULT(
      ncclInvalidArgument,
      ncclAllReduce(&value, &sum, 1, static_cast<ncclDataType_t>(99), ncclSum, child, nullptr));

  APP_DONE(child, ncclCommFinalize(child));
  APP_OK(ncclCommDestroy(child));
  APP_DONE(comm, ncclCommFinalize(comm));
  APP_OK(ncclCommDestroy(comm));

  // Given up while it is being made: one rank too many is expected.
  APP_OK(ncclGetUniqueId(&id));
  id.internal[101] = static_cast<char>(1 + app::Rank());
  ncclComm_t never = nullptr;
  result = ncclCommInitRankConfig(&never, 2, id, app::Rank() % 2, &config);
  APP_CHECK(result == ncclInProgress && never != nullptr);
  ncclResult_t state = ncclSuccess;
  APP_OK(ncclCommGetAsyncError(never, &state));
  APP_CHECK(state == ncclInProgress);
  int count = 0;
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommCount(never, &count));
  APP_OK(ncclCommAbort(never));
  return app::Finish();
}
