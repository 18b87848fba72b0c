#include "watchdog.h"

#include <pthread.h>

#include <chrono>
#include <utility>

namespace digits {
namespace {

using std::chrono_literals::operator""ms;
constexpr auto kBetweenLooks = 50ms;

}  // namespace

Watchdog::Watchdog(std::vector<const Communicator*> comms)
    : comms_(std::move(comms)), thread_(&Watchdog::Loop, this) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void Watchdog::Loop() {
  pthread_setname_np(pthread_self(), "watchdog");
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_.wait_for(lock, kBetweenLooks, [&] { return stop_; })) {
    for (const Communicator* comm : comms_) comm->CheckForErrors();
  }
}

}  // namespace digits
