// One rank is killed while the others need it. They get an error that names it, and say how long it
// took.
//
//     nccl_survivors --during all-reduce|large|broadcast|receive|send|split|init|group [--victim R]
#include <chrono>
#include <csignal>
#include <thread>

#include "app.h"

namespace {

std::string After(const app::Arguments& arguments, const char* flag, const char* otherwise) {
  for (size_t i = 0; i + 1 < arguments.rest.size(); ++i)
    if (arguments.rest[i] == flag) return arguments.rest[i + 1];
  return otherwise;
}

// What everyone does over and over; the victim is killed in the middle of it by a thread of its
// own.
ncclResult_t Work(const std::string& during, int victim, ncclComm_t comm,
                  std::vector<float>* data) {
  size_t count = during == "large" ? data->size() : 1000;
  float* x = data->data();
  if (during == "broadcast") return ncclBroadcast(x, x, count, ncclFloat, victim, comm, nullptr);
  if (during == "receive") {
    if (app::Rank() == victim)
      return ncclRecv(x, count, ncclFloat, (victim + 1) % app::World(), comm, nullptr);
    return ncclRecv(x, count, ncclFloat, victim, comm, nullptr);
  }
  if (during == "send") {
    if (app::Rank() == victim)
      return ncclRecv(x, count, ncclFloat, (victim + 1) % app::World(), comm, nullptr);
    return ncclSend(x, data->size(), ncclFloat, victim, comm, nullptr);
  }
  if (during == "split") {
    ncclComm_t child = nullptr;
    ncclResult_t result = ncclCommSplit(comm, 0, app::Rank(), &child, nullptr);
    if (result == ncclSuccess) result = ncclCommDestroy(child);
    return result;
  }
  if (during == "group") {
    APP_OK(ncclGroupStart());
    APP_OK(ncclAllReduce(x, x, count, ncclFloat, ncclMax, comm, nullptr));
    APP_OK(ncclAllReduce(x, x, count, ncclFloat, ncclMin, comm, nullptr));
    return ncclGroupEnd();
  }
  return ncclAllReduce(x, x, count, ncclFloat, ncclMax, comm, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  std::string during = After(arguments, "--during", "all-reduce");
  int victim = std::atoi(After(arguments, "--victim", "1").c_str());
  if (during == "init") {
    // The victim is there, but the last rank never comes.
    if (app::Rank() == app::World() - 1) return app::Finish();
    std::thread killer;
    if (app::Rank() == victim)
      killer = std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        raise(SIGKILL);
      });
    ncclUniqueId id;
    APP_OK(ncclGetUniqueId(&id));
    ncclComm_t comm = nullptr;
    APP_EXPECT_RESULT(ncclRemoteError, ncclCommInitRank(&comm, app::World(), id, app::Rank()));
    APP_CHECK(comm == nullptr);
    return app::Finish();
  }
  ncclComm_t comm = app::InitWorld();
  std::vector<float> data(1 << 20, 1.0f);
  std::thread killer;
  if (app::Rank() == victim) {
    killer = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      raise(SIGKILL);
    });
  }
  ncclResult_t result = ncclSuccess;
  auto last_good = std::chrono::steady_clock::now();
  while (result == ncclSuccess) {
    last_good = std::chrono::steady_clock::now();
    result = Work(during, victim, comm, &data);
  }
  double waited =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - last_good).count();
  APP_CHECK(result == ncclRemoteError);
  std::string wanted = "rank " + std::to_string(victim) + " ";
  APP_CHECK(std::strstr(ncclGetLastError(comm), wanted.c_str()) != nullptr);
  ncclResult_t state = ncclSuccess;
  APP_OK(ncclCommGetAsyncError(comm, &state));
  APP_CHECK(state == ncclRemoteError);
  // The rest can go on without it.
  ncclComm_t rest = nullptr;
  APP_OK(ncclCommShrink(comm, &victim, 1, &rest, nullptr, NCCL_SHRINK_ABORT));
  int32_t one = 1;
  APP_OK(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, rest, nullptr));
  APP_CHECK(one == app::World() - 1);
  APP_OK(ncclCommDestroy(rest));
  APP_OK(ncclCommAbort(comm));
  std::fprintf(stderr, "rank %d: told after %.3f s\n", app::Rank(), waited);
  return app::Finish();
}
