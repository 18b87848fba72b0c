// A training loop that can go on from a checkpoint. Options make one that cannot. They are state of
// another name or shape, a thread or communicator after the first step, a death during a save.
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "include/deja.hpp"
#include "tests/e2e/apps/replay/check.h"

namespace {

constexpr size_t kSize = 3000;

struct Flags {
  int steps = 30;
  int kill_in_save = 0;  // the save with this number, of rank 1
  bool rename = false;
  bool reshape = false;
  bool retype = false;  // as integers of the same size
  bool forget = false;
  bool extra = false;
  bool refuse = false;  // to load
  bool late_thread = false;
  bool late_comm = false;
  bool ask = false;   // for a checkpoint, with deja_checkpoint
  bool tell = false;  // what the state is at each step and operation
};

// The position in a stream of random numbers that another thread makes.
class Feeder {
 public:
  explicit Feeder(const Flags& flags) : flags_(flags) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Feeder() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  uint32_t Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return full_; });
    full_ = false;
    changed_.notify_all();
    return value_;
  }
  void Save(deja_write_t write, void* sink) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return full_; });
    if (++saves_ == flags_.kill_in_save) kill(getpid(), SIGKILL);
    write(sink, &value_, sizeof value_);
    write(sink, &made_, sizeof made_);
  }
  bool Load(const void* data, size_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return full_; });
    if (flags_.refuse || bytes != sizeof value_ + sizeof made_) return false;
    std::memcpy(&value_, data, sizeof value_);
    std::memcpy(&made_, static_cast<const char*>(data) + sizeof value_, sizeof made_);
    return true;
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || !full_; });
      if (stop_) return;
      value_ = std::random_device{}() ^ static_cast<uint32_t>(++made_);  // entropy on this thread
      full_ = true;
      changed_.notify_all();
    }
  }

  const Flags& flags_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t value_ = 0;
  uint64_t made_ = 0;
  bool full_ = false;
  bool stop_ = false;
  int saves_ = 0;
  std::thread thread_;
  deja::Registered registered_ = deja::Registered::Object("feeder", *this);
};

Flags Parse(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--steps" && i + 1 < argc) flags.steps = std::atoi(argv[++i]);
    if (flag == "--kill-in-save" && i + 1 < argc) flags.kill_in_save = std::atoi(argv[++i]);
    if (flag == "--rename") flags.rename = true;
    if (flag == "--reshape") flags.reshape = true;
    if (flag == "--retype") flags.retype = true;
    if (flag == "--forget") flags.forget = true;
    if (flag == "--extra") flags.extra = true;
    if (flag == "--refuse") flags.refuse = true;
    if (flag == "--late-thread") flags.late_thread = true;
    if (flag == "--late-comm") flags.late_comm = true;
    if (flag == "--ask") flags.ask = true;
    if (flag == "--tell") flags.tell = true;
  }
  return flags;
}

// Asks the kernel for numbers when an option says so.
class LateThread {
 public:
  void Draw() {
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    std::unique_lock lock(mutex_);
    wanted_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !wanted_; });
  }
  ~LateThread() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || wanted_; });
      if (stop_) return;
      (void)std::random_device{}();
      wanted_ = false;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool stop_ = false;
  std::thread thread_;
};

__attribute__((noinline)) void Tell(const Flags& flags, int rank, const char* what, int number,
                                    uint64_t trail, float weight) {
  if (!flags.tell) return;
  std::printf("rank %d %s %d: %lx %.9g\n", rank, what, number, static_cast<unsigned long>(trail),
              static_cast<double>(weight));
}

uint64_t HashOf(const std::vector<float>& values, uint64_t hash) {
  for (float v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = Parse(argc, argv);
  const int rank = std::atoi(std::getenv("RANK"));
  const int nranks = std::atoi(std::getenv("WORLD_SIZE"));
  Flags own = flags;
  if (rank != 1) own.kill_in_save = 0;
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, nranks, id, rank));
  std::mt19937_64 generator(std::random_device{}());
  std::normal_distribution<float> normal;
  std::vector<float> weights(kSize);
  for (float& w : weights) w = normal(generator);
  uint64_t trail = 1469598103934665603ull;  // of everything that the steps have seen
  Feeder feeder(own);
  LateThread late;
  ncclComm_t late_comm = nullptr;
  std::vector<deja::Registered> registered;
  if (flags.reshape)
    registered.push_back(deja::Registered::Tensor("weights", weights.data(), {30, 100}));
  else if (flags.retype)
    registered.push_back(deja::Registered::Tensor("weights",
                                                  reinterpret_cast<int32_t*>(weights.data()),
                                                  {static_cast<int64_t>(weights.size())}));
  else
    registered.push_back(deja::Registered::Tensor(flags.rename ? "weight" : "weights", weights));
  registered.push_back(deja::Registered::Engine("generator", generator));
  if (!flags.forget) registered.push_back(deja::Registered::State("trail", trail));
  if (flags.extra) registered.push_back(deja::Registered::State("steps", own.steps));

  std::vector<float> gradient(kSize);
  for (int step = 0; step < flags.steps; ++step) {
    step = static_cast<int>(deja_step(static_cast<uint64_t>(step)));
    Tell(flags, rank, "step", step, trail, weights[0]);
    if (flags.ask && step == 6) deja_checkpoint();
    std::normal_distribution<float> noise;
    for (float& g : gradient) g = noise(generator) + weights[0];
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    trail = (trail ^ static_cast<uint64_t>(now)) * 1099511628211ull;
    trail = (trail ^ feeder.Next()) * 1099511628211ull;
    // A thread that comes and goes in each step.
    std::thread([&] { trail = (trail ^ std::random_device{}()) * 1099511628211ull; }).join();
    if (flags.late_thread && step >= 2) late.Draw();
    if (flags.late_comm && step == 2) CHECK(ncclCommSplit(comm, 0, rank, &late_comm, nullptr));
    Tell(flags, rank, "operation", step + 1, trail, weights[0]);
    CHECK(ncclAllReduce(gradient.data(), gradient.data(), kSize, ncclFloat, ncclSum,
                        late_comm != nullptr ? late_comm : comm, nullptr));
    for (size_t i = 0; i < kSize; ++i) weights[i] -= 0.01f * gradient[i];
  }
  std::printf("rank %d trail %016lx\n", rank, static_cast<unsigned long>(HashOf(weights, trail)));
  CHECK(ncclCommDestroy(comm));
  return 0;
}
