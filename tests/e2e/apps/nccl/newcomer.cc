// A rank is lost; the others go on without it, and take in another one. Sums are printed.
//
//     nccl_newcomer [--inside [--by-another]] [--id-unsaid]
//
// Rank 1 ends by SIGKILL, between two all-reduces, or inside of one (--inside). It has handed out
// its numbers for that: the others, who come later, get their sums. Rank 0 sends the signal with
// --by-another. With --id-unsaid it leaves the id of the grown communicator, which it has made, to
// the library. Needs at least 4 ranks; the last one is the newcomer.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "app.h"

namespace {

constexpr int kVictim = 1;

void Reduce(ncclComm_t comm, const char* what, app::Numbers& numbers) {
  uint64_t value = numbers.Next();
  APP_OK(ncclAllReduce(&value, &value, 1, ncclUint64, ncclSum, comm, nullptr));
  app::Print(what, value);
}

[[noreturn]] void EndInside(ncclComm_t crew, app::Numbers& numbers, bool by_itself) {
  if (by_itself)
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      raise(SIGKILL);
    }).detach();
  uint64_t value = numbers.Next();
  ncclAllReduce(&value, &value, 1, ncclUint64, ncclSum, crew, nullptr);
  for (;;) pause();
}

// What is left of the communicator once a call on it has failed.
ncclComm_t WithoutVictim(ncclComm_t crew) {
  uint64_t value = 0;
  APP_EXPECT_RESULT(ncclRemoteError,
                    ncclAllReduce(&value, &value, 1, ncclUint64, ncclSum, crew, nullptr));
  int victim = kVictim;
  ncclComm_t rest = nullptr;
  APP_OK(ncclCommShrink(crew, &victim, 1, &rest, nullptr, NCCL_SHRINK_ABORT));
  APP_OK(ncclCommAbort(crew));
  return rest;
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t world = app::InitWorld();
  app::AgreeOnSeed(&arguments, world);
  const int rank = app::Rank();
  const int n = app::World();
  APP_CHECK(n >= 4);
  const bool newcomer = rank == n - 1;
  app::Numbers numbers(arguments.seed, rank, 1);
  ncclComm_t crew = nullptr;
  APP_OK(ncclCommSplit(world, newcomer ? NCCL_SPLIT_NOCOLOR : 0, rank, &crew, nullptr));
  // By which the newcomer gets the id.
  ncclComm_t mail = nullptr;
  APP_OK(
      ncclCommSplit(world, newcomer || rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, rank, &mail, nullptr));
  const bool inside = arguments.Has("--inside");
  const bool by_another = arguments.Has("--by-another");
  int32_t victim = getpid();
  APP_OK(ncclBcast(&victim, 1, ncclInt32, kVictim, world, nullptr));
  ncclComm_t rest = nullptr;
  if (!newcomer) {
    for (int i = 0; i < 3; ++i) Reduce(crew, "crew", numbers);
    if (rank == kVictim) {
      std::fflush(stdout);
      if (inside) EndInside(crew, numbers, !by_another);
      raise(SIGKILL);
    }
    if (inside) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      if (by_another && rank == 0) kill(victim, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      Reduce(crew, "crew", numbers);
    }
    rest = WithoutVictim(crew);
    Reduce(rest, "rest", numbers);
  }
  ncclUniqueId id{};
  if (rank == 0) APP_OK(ncclCommGetUniqueId(rest, &id));
  if (mail != nullptr) APP_OK(ncclBcast(&id, sizeof id, ncclUint8, 0, mail, nullptr));
  ncclComm_t grown = nullptr;
  const ncclUniqueId* known = rank == 0 && !arguments.Has("--id-unsaid") ? &id : nullptr;
  if (newcomer)
    APP_OK(ncclCommGrow(nullptr, n - 1, &id, n - 2, &grown, nullptr));
  else
    APP_OK(ncclCommGrow(rest, n - 1, known, -1, &grown, nullptr));
  for (int i = 0; i < 3; ++i) Reduce(grown, "grown", numbers);
  APP_OK(ncclCommDestroy(grown));
  return app::Finish();
}
