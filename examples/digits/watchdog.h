// Sees that ranks are lost. Calls on a GPU have returned by then, and streams wait for ever.
#ifndef DEJA_EXAMPLES_DIGITS_WATCHDOG_H_
#define DEJA_EXAMPLES_DIGITS_WATCHDOG_H_

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "comms.h"

namespace digits {

// Asks the communicators for errors in a thread of its own, and ends the process when one has any.
class Watchdog {
 public:
  // The communicators must outlive it.
  explicit Watchdog(std::vector<const Communicator*> comms);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Loop();

  const std::vector<const Communicator*> comms_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;  // by mutex_
  std::thread thread_;
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_WATCHDOG_H_
