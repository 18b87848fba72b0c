// ncclCommAbort and ncclCommRevoke: an operation that can never end is given up by another thread,
// and what the other ranks then see.
#include <atomic>
#include <thread>

#include "app.h"

namespace {

void Pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Rank 0 never takes part. The others hang in an all-reduce until they abort.
void AbortWhileWaiting() {
  ncclComm_t comm = app::InitWorld();
  if (app::Rank() == 0) {
    // No rank needs this one any more when they have all aborted; it only leaves.
    Pause(300);
    APP_OK(ncclCommAbort(comm));
    return;
  }
  std::atomic<int> result{-1};
  std::thread stuck([&] {
    float x = 1;
    result = ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, nullptr);
  });
  Pause(100);
  APP_CHECK(result == -1);
  APP_OK(ncclCommAbort(comm));
  stuck.join();
  APP_CHECK(result != ncclSuccess && result != ncclInProgress);
}

// Rank 0 aborts while the others wait for it: they get an error instead of hanging for ever.
void AbortIsSeenByOthers() {
  ncclComm_t comm = app::InitWorld();
  if (app::Rank() == 0) {
    Pause(100);
    APP_OK(ncclCommAbort(comm));
    return;
  }
  float x = 1;
  APP_EXPECT_RESULT(ncclRemoteError, ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, nullptr));
  APP_CHECK(std::strstr(ncclGetLastError(comm), "rank 0") != nullptr);
  ncclResult_t state = ncclSuccess;
  APP_OK(ncclCommGetAsyncError(comm, &state));
  APP_CHECK(state == ncclRemoteError);
  // The communicator is of no more use.
  APP_EXPECT_RESULT(ncclRemoteError, ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, nullptr));
  APP_OK(ncclCommAbort(comm));
}

// A revoked communicator does no more work but can still be split.
void Revoke(uint64_t seed) {
  ncclComm_t comm = app::InitWorld();
  std::atomic<int> result{-1};
  std::thread stuck;
  if (app::Rank() != 0) {
    stuck = std::thread([&] {
      float x = 1;
      result = ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, nullptr);
    });
    Pause(100);
  }
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommRevoke(comm, 17));
  APP_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
  if (stuck.joinable()) {
    stuck.join();
    APP_CHECK(result != ncclSuccess);
  }
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
  ncclResult_t state = ncclInProgress;
  APP_OK(ncclCommGetAsyncError(comm, &state));
  APP_CHECK(state == ncclSuccess);
  float x = 1;
  APP_EXPECT_RESULT(ncclInvalidUsage,
                    ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, nullptr));
  ncclComm_t child = nullptr;
  APP_OK(ncclCommSplit(comm, 0, app::Rank(), &child, nullptr));
  uint64_t value = app::Numbers(seed, static_cast<uint64_t>(app::Rank()), 1).Next();
  APP_OK(ncclAllReduce(&value, &value, 1, ncclUint64, ncclSum, child, nullptr));
  app::Print("after revoke", value);
  APP_OK(ncclCommDestroy(child));
  APP_OK(ncclCommDestroy(comm));
}

}  // namespace

// Needs at least 2 ranks.
int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  APP_CHECK(app::World() >= 2);
  ncclComm_t world = app::InitWorld();
  app::AgreeOnSeed(&arguments, world);
  AbortWhileWaiting();
  AbortIsSeenByOthers();
  Revoke(arguments.seed);
  APP_OK(ncclCommAbort(world));
  APP_OK(ncclCommAbort(nullptr));
  return app::Finish();
}
