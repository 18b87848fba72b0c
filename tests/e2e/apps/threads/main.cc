// threads NAME…: these behaviours, one after another. threads: their names.
#include <time.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/e2e/apps/threads/behaviours.h"

namespace threads {

void Log::Add(int thread, int64_t what) {
  for (const int64_t part : {int64_t{thread}, what})
    hash_ = (hash_ ^ static_cast<uint64_t>(part)) * 0x100000001b3u;
  ++count_;
  if (thread == thread_) return;
  thread_ = thread;
  constexpr int kShown = 40;
  if (++runs_ <= kShown) text_ += " " + std::to_string(thread) + ":" + std::to_string(what);
}

void Log::Print(const char* title) const {
  std::printf("%s: %lld in %d turns, %016llx:%s\n", title, static_cast<long long>(count_), runs_,
              static_cast<unsigned long long>(hash_), text_.c_str());
}

void Work(int amount) {
  volatile uint32_t state = static_cast<uint32_t>(amount);
  for (int i = 0; i < amount * 50; ++i) state = state * 1664525 + 1013904223;
  if (amount % 7 == 3) std::this_thread::yield();
}

void Nap(int microseconds) {
  const timespec span{0, microseconds * 1000L};
  nanosleep(&span, nullptr);
}

void RunThreads(int count, const std::function<void(int)>& body) {
  std::mutex mutex;
  std::condition_variable all_there;
  int there = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back([&, i] {
      {
        std::unique_lock lock(mutex);
        if (++there == count) all_there.notify_all();
        all_there.wait(lock, [&] { return there == count; });
      }
      body(i);
    });
  }
  for (std::thread& thread : all) thread.join();
}

}  // namespace threads

int main(int argc, char** argv) {
  for (const auto& list :
       {threads::QueueBehaviours(), threads::ConditionBehaviours(), threads::LockBehaviours(),
        threads::OnceBehaviours(), threads::C11Behaviours(), threads::EndBehaviours()}) {
    for (const threads::Behaviour& behaviour : list) {
      if (argc < 2) std::puts(behaviour.name);
      for (int i = 1; i < argc; ++i)
        if (std::strcmp(argv[i], behaviour.name) == 0) behaviour.run();
    }
  }
}
