// Asks for everything that differs from run to run, on several threads, and waits until wall-clock
// times. Prints what it got, and whether the waits took as long as they should.
#include <nccl.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Steady = std::chrono::steady_clock;
using Wall = std::chrono::system_clock;

uint64_t FromDevice() {
  std::ifstream in("/dev/urandom", std::ios::binary);
  uint64_t value = 0;
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

std::string Ask() {
  timeval tv;
  gettimeofday(&tv, nullptr);
  timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  char host[256] = "";
  gethostname(host, sizeof host);
  char text[512];
  std::snprintf(text, sizeof text, "%ld %ld.%06ld %ld.%09ld %016lx %u %d %s %u",
                static_cast<long>(time(nullptr)), static_cast<long>(tv.tv_sec),
                static_cast<long>(tv.tv_usec), static_cast<long>(ts.tv_sec), ts.tv_nsec,
                static_cast<unsigned long>(FromDevice()), std::random_device()(),
                static_cast<int>(getpid()), host, std::thread::hardware_concurrency());
  return text;
}

// A wait of 200 ms until a time that was computed from the wall clock.
bool WaitsAsLongAsItShould() {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock<std::mutex> lock(mutex);
  const auto begin = Steady::now();
  const auto until = Wall::now() + std::chrono::milliseconds(200);
  while (changed.wait_until(lock, until) != std::cv_status::timeout) {
  }
  const auto took = Steady::now() - begin;
  return took > std::chrono::milliseconds(150) && took < std::chrono::seconds(30);
}

}  // namespace

int main() {
  ncclUniqueId id;
  ncclComm_t comm;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess)
    return 3;
  std::printf("main: %s\n", Ask().c_str());
  std::vector<std::string> answers(3);
  std::vector<std::thread> threads;
  for (std::string& answer : answers) threads.emplace_back([&answer] { answer = Ask(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) std::printf("thread: %s\n", answer.c_str());
  bool waited = false;
  std::thread([&waited] { waited = WaitsAsLongAsItShould(); }).join();
  std::printf("wait: %s, %s\n", WaitsAsLongAsItShould() ? "good" : "bad", waited ? "good" : "bad");
  float x = 1;
  if (ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr) != ncclSuccess) return 3;
  ncclCommDestroy(comm);
  return 0;
}
