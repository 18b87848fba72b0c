#include "replayer/process/held_at_forks.h"

#include <pthread.h>

#include <atomic>
#include <ctime>
#include <utility>

#include "preload/process/guard.h"

namespace deja::replayer {
namespace {

std::atomic<std::mutex*> g_mutex{nullptr};
// What the calling thread holds while it forks. A child may have given another mutex meanwhile.
constinit thread_local std::mutex* t_held __attribute__((tls_model("initial-exec"))) = nullptr;

void Hold() {
  constexpr int kSteps = 20'000;
  constexpr timespec kStep{0, 50'000};
  const preload::Guard guard;
  std::mutex* const mutex = g_mutex.load();
  // A handler of a signal may fork while this very thread has it.
  for (int step = 0; step < kSteps; ++step) {
    if (mutex->try_lock()) {
      t_held = mutex;
      return;
    }
    nanosleep(&kStep, nullptr);
  }
}

void Release() {
  const preload::Guard guard;
  if (std::mutex* const held = std::exchange(t_held, nullptr)) held->unlock();
}

}  // namespace

void HoldAtForks(std::mutex& mutex) {
  g_mutex.store(&mutex);
  static const int watching = pthread_atfork(&Hold, &Release, &Release);
  (void)watching;
}

}  // namespace deja::replayer
