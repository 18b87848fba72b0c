// A small data-parallel trainer for the tests of replay. Unseeded: entropy, the clock and the pid
// feed its generator, so that two runs never compute the same. Prints a hash of its weights.
//
//   replay_trainer [--steps N] [--fault KIND --fault-step S --fault-rank R] [--no-snapshot]
//                  [--flip-step S (--flip-index I [--flip-far] | --flip-loss)] [--rng [--draw-step
//                  S]]
//   KIND: crash abort exit hang skip nan sleep-kill kill-other (--victim PID)
// A flip changes one element of the gradient, or the loss, by one ULP: what a replay must notice.
// Option --flip-far changes it so far that no sum rounds it away. Option --rng shows the state of
// the generator as each step begins; --draw-step draws one number more in a step, when its gradient
// is made.
#include <nccl.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "include/deja.h"

namespace {

constexpr size_t kSize = 1000;

struct Flags {
  int steps = 20;
  std::string fault = "none";
  int fault_step = 10;
  int fault_rank = 2;
  int victim = 0;
  int flip_step = -1;
  int flip_index = 0;
  bool flip_loss = false;
  bool flip_far = false;
  bool snapshot = true;
  bool rng = false;
  int draw_step = -1;
};

#define CHECK(call)                                            \
  do {                                                         \
    ncclResult_t rc_ = (call);                                 \
    if (rc_ != ncclSuccess) {                                  \
      std::printf("%s: %s\n", #call, ncclGetErrorString(rc_)); \
      std::exit(3);                                            \
    }                                                          \
  } while (0)

int EnvInt(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::atoi(value);
}

int* volatile g_nowhere = nullptr;

__attribute__((noinline)) void CrashHere(volatile int* at) {
  *at = 42;
}

void Fault(const Flags& flags, int step, int rank) {
  if (step != flags.fault_step || rank != flags.fault_rank) return;
  std::fflush(stdout);
  if (flags.fault == "crash") CrashHere(g_nowhere);
  if (flags.fault == "abort") std::abort();
  if (flags.fault == "exit") std::exit(7);
  if (flags.fault == "sleep-kill") kill(getpid(), SIGKILL);
  if (flags.fault == "kill-other") kill(flags.victim, SIGTERM);
}

uint64_t HashOf(const std::vector<float>& values) {
  uint64_t hash = 1469598103934665603ull;
  for (float v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
  }
  return hash;
}

uint64_t Seed() {
  std::random_device device;
  uint64_t seed = device();
  seed = seed * 31 + static_cast<uint64_t>(time(nullptr));
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return seed * 31 + static_cast<uint64_t>(now.tv_nsec) + static_cast<uint64_t>(getpid());
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (flag == "--steps") flags.steps = std::atoi(next());
    if (flag == "--fault") flags.fault = next();
    if (flag == "--fault-step") flags.fault_step = std::atoi(next());
    if (flag == "--fault-rank") flags.fault_rank = std::atoi(next());
    if (flag == "--victim") flags.victim = std::atoi(next());
    if (flag == "--flip-step") flags.flip_step = std::atoi(next());
    if (flag == "--flip-index") flags.flip_index = std::atoi(next());
    if (flag == "--flip-loss") flags.flip_loss = true;
    if (flag == "--flip-far") flags.flip_far = true;
    if (flag == "--no-snapshot") flags.snapshot = false;
    if (flag == "--rng") flags.rng = true;
    if (flag == "--draw-step") flags.draw_step = std::atoi(next());
  }
  const int rank = EnvInt("RANK");
  const int nranks = EnvInt("WORLD_SIZE");
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, nranks, id, rank));
  ncclComm_t halves;
  CHECK(ncclCommSplit(comm, rank % 2, rank, &halves, nullptr));

  std::mt19937_64 generator(Seed());
  std::normal_distribution<float> normal;
  std::vector<float> weights(kSize);
  std::vector<float> gradient(kSize);
  std::vector<float> reduced(kSize);
  std::vector<float> all(static_cast<size_t>(nranks));
  for (float& w : weights) w = normal(generator);
  CHECK(ncclBroadcast(weights.data(), weights.data(), kSize, ncclFloat, 0, comm, nullptr));

  for (int step = 0; step < flags.steps; ++step) {
    deja_step(static_cast<uint64_t>(step));
    if (flags.rng) deja_state("rng/trainer", &generator, sizeof generator);
    for (float& g : gradient) g = normal(generator);
    if (step == flags.draw_step) generator();
    if (step == flags.flip_step && !flags.flip_loss)
      gradient[static_cast<size_t>(flags.flip_index)] =
          flags.flip_far ? 100.0f
                         : std::nextafter(gradient[static_cast<size_t>(flags.flip_index)], 1e30f);
    const int64_t shape[] = {static_cast<int64_t>(kSize)};
    if (flags.snapshot) deja_tensor("gradient", gradient.data(), shape, 1, DEJA_FLOAT32);
    if (flags.fault == "nan" && step == flags.fault_step && rank == flags.fault_rank)
      gradient[17] = std::sqrt(-1.0f - gradient[17] * gradient[17]);
    Fault(flags, step, rank);
    if (flags.fault == "skip" && step == flags.fault_step && rank == flags.fault_rank) continue;
    if (flags.fault == "hang" && step == flags.fault_step && rank == flags.fault_rank) pause();
    CHECK(ncclAllReduce(gradient.data(), reduced.data(), kSize, ncclFloat, ncclSum, comm, nullptr));
    for (size_t i = 0; i < kSize; ++i) weights[i] -= 0.01f * reduced[i];
    float loss = weights[static_cast<size_t>(rank)];
    if (flags.flip_loss && step == flags.flip_step) loss = std::nextafter(loss, -1e30f);
    CHECK(ncclAllGather(&loss, all.data(), 1, ncclFloat, comm, nullptr));
    // A ring of neighbours, in a group.
    std::vector<float> from_left(16);
    CHECK(ncclGroupStart());
    CHECK(ncclSend(weights.data(), 16, ncclFloat, (rank + 1) % nranks, comm, nullptr));
    CHECK(ncclRecv(from_left.data(), 16, ncclFloat, (rank + nranks - 1) % nranks, comm, nullptr));
    CHECK(ncclGroupEnd());
    weights[0] += from_left[3];
    CHECK(ncclAllReduce(weights.data(), weights.data(), 8, ncclFloat, ncclMax, halves, nullptr));
  }
  std::printf("rank %d pid %d weights %016lx\n", rank, static_cast<int>(getpid()),
              static_cast<unsigned long>(HashOf(weights)));
  CHECK(ncclCommDestroy(halves));
  CHECK(ncclCommDestroy(comm));
  return 0;
}
