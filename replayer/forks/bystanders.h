// Bystanders: the other threads of the process while the main thread makes an image of it.
//
// Each is stopped by a signal, which the C library keeps for itself and lets no program block. An
// image has no threads until it goes on; then they are made again (stopped_thread.h). While they
// are stopped the main thread takes no lock and allocates nothing: one of them may hold the lock.
//
// A thread that computes at that moment may hold a lock that remembers its number, which is another
// one in an image. So all of them must wait, in a system call. Main thread only.
#ifndef DEJA_REPLAYER_FORKS_BYSTANDERS_H_
#define DEJA_REPLAYER_FORKS_BYSTANDERS_H_

#include <cstdint>

#include "replayer/forks/reason.h"

namespace deja::replayer {

class Bystanders {
 public:
  // In its scope they are stopped, if `reason()` is empty.
  class Stop {
   public:
    Stop();
    ~Stop();
    Stop(const Stop&) = delete;
    Stop& operator=(const Stop&) = delete;
    [[nodiscard]] const Reason& reason() const { return reason_; }

   private:
    Reason reason_;
  };

  // In an image that goes on: they are there again, and wait. False: one cannot be made.
  static bool MakeAgain();
  // They go on.
  static void LetGo();
  // In an image: the number of the thread that had this one when the image was made.
  static int NewNumber(int tid);
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_BYSTANDERS_H_
