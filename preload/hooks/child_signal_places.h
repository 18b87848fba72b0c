// The calls at which a place of SIGCHLD is known, in a program of Python (preload/engine/
// child_signal.h). A hook has one of these objects for as long as its call takes.
//
// Any thread; no allocation.
#ifndef DEJA_PRELOAD_HOOKS_CHILD_SIGNAL_PLACES_H_
#define DEJA_PRELOAD_HOOKS_CHILD_SIGNAL_PLACES_H_

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "preload/engine/child_signal.h"

namespace deja::preload {

// A call at which the place is known begins, and the signal has come or waits. True: the program
// has it now. Keeps errno.
bool BeginCallAtPlace();
// A file call ends, and the program has a handler. Keeps errno.
void EndFileCall();
// A call that only sleeps begins, and the program has a handler. True: the signal ends it. Keeps
// errno.
bool BeginSleep();
void EndSleep();
// A signal has ended it. True: only one that the program does not get here, so it goes on.
bool GoesOnToSleep();

// Around a call of the program's that opens, reads, writes or closes a file, or sets the handler.
class FileCall {
 public:
  FileCall() {
    if (t_child_signal.came || t_child_signal.waits) [[unlikely]]
      is_ended_ = BeginCallAtPlace();
  }
  ~FileCall() {
    if (g_child_signal_handler.load(std::memory_order_relaxed) != nullptr && counts_) [[unlikely]]
      EndFileCall();
  }
  FileCall(const FileCall&) = delete;
  FileCall& operator=(const FileCall&) = delete;

  // `call()` reads or writes. The signal may end it (EINTR) as in the recorded run, and only where
  // it does. A call that was ended does not count: the interpreter makes it again.
  template <typename Call>
  ssize_t Make(const Call& call) {
    ssize_t n = -1;
    t_child_signal.was_kept = false;
    if (is_ended_) {
      errno = EINTR;
    } else {
      do {
        n = call();
      } while (n < 0 && errno == EINTR && IsKeptFromReplay());
    }
    counts_ = n >= 0 || errno != EINTR;
    return n;
  }

 private:
  // Only a live signal has ended the call, of which a replay's program hears elsewhere.
  static bool IsKeptFromReplay() {
    return g_counts_file_calls.load(std::memory_order_relaxed) &&
           std::exchange(t_child_signal.was_kept, false);
  }

  bool is_ended_ = false;
  bool counts_ = true;
};

// Around a wait whose event says itself that the signal has ended it.
class ToldWait {
 public:
  ToldWait() { ++t_child_signal.told_waits; }
  ~ToldWait() { --t_child_signal.told_waits; }
  ToldWait(const ToldWait&) = delete;
  ToldWait& operator=(const ToldWait&) = delete;
};

// Around a call in which the calling thread meets another process.
class MeetingCall {
 public:
  // Counts file calls from nothing, so that a difference between two runs does not last.
  MeetingCall() {
    if (t_child_signal.came || t_child_signal.waits) [[unlikely]]
      BeginCallAtPlace();
    Forget();
  }
  ~MeetingCall() { Forget(); }
  MeetingCall(const MeetingCall&) = delete;
  MeetingCall& operator=(const MeetingCall&) = delete;

 private:
  static void Forget() {
    t_child_signal.file_calls = 0;
    t_child_signal.sleeps = 0;
  }

  const ToldWait told_;
};

// Around a call that only sleeps. Where `is_ended()`, SIGCHLD ends it before it begins.
class SleepCall {
 public:
  SleepCall()
      : is_ended_(g_child_signal_handler.load(std::memory_order_relaxed) != nullptr &&
                  BeginSleep()) {}
  ~SleepCall() {
    if (t_child_signal.sleeps % 2 != 0) [[unlikely]]
      EndSleep();
  }
  SleepCall(const SleepCall&) = delete;
  SleepCall& operator=(const SleepCall&) = delete;
  [[nodiscard]] bool is_ended() const { return is_ended_; }
  // After EINTR.
  static bool GoesOn() { return t_child_signal.was_kept && GoesOnToSleep(); }

 private:
  const bool is_ended_;
};

// Around a wait that returns only when what it waits for is there, or its time is over.
class DeafWait {
 public:
  DeafWait() { ++t_child_signal.deaf_waits; }
  ~DeafWait() { --t_child_signal.deaf_waits; }
  DeafWait(const DeafWait&) = delete;
  DeafWait& operator=(const DeafWait&) = delete;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_CHILD_SIGNAL_PLACES_H_
