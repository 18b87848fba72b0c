// The calls at which a place of SIGCHLD is known, in a program of Python (preload/engine/
// child_signal.h). A hook has one of these objects for as long as its call takes.
//
// Any thread; no allocation.
#ifndef DEJA_PRELOAD_HOOKS_CHILD_SIGNAL_PLACES_H_
#define DEJA_PRELOAD_HOOKS_CHILD_SIGNAL_PLACES_H_

#include <atomic>

#include "preload/engine/child_signal.h"

namespace deja::preload {

// A call at which the place is known begins, and the signal has come or waits. Keeps errno.
void BeginCallAtPlace();
// A file call ends, and the program has a handler. Keeps errno.
void EndFileCall();

// Around a call of the program's that opens, reads, writes or closes a file, or sets the handler.
class FileCall {
 public:
  FileCall() {
    if (t_child_signal.came || t_child_signal.waits) [[unlikely]]
      BeginCallAtPlace();
  }
  ~FileCall() {
    if (g_child_signal_handler.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      EndFileCall();
  }
  FileCall(const FileCall&) = delete;
  FileCall& operator=(const FileCall&) = delete;
};

// Around a call in which the calling thread meets another process.
class MeetingCall {
 public:
  // Counts file calls from nothing, so that a difference between two runs does not last.
  MeetingCall() {
    if (t_child_signal.came || t_child_signal.waits) [[unlikely]]
      BeginCallAtPlace();
    t_child_signal.file_calls = 0;
  }
  ~MeetingCall() { t_child_signal.file_calls = 0; }
  MeetingCall(const MeetingCall&) = delete;
  MeetingCall& operator=(const MeetingCall&) = delete;
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
