// MeetingCalls: what an engine does with the calls by which processes of a rank meet. They are
// semaphores and locks in shared memory, waits for descriptors, eventfds, pipes.
//
// Any thread. Without the guard, but for Pipes: the calls may block, and be left by cancellation.
// The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_MEETING_CALLS_H_
#define DEJA_PRELOAD_CALLS_MEETING_CALLS_H_

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cstdint>

#include "preload/engine/fd_table.h"

namespace deja::preload {

class OwnPipe;
class PipeTable;

// The program takes a semaphore, a mutex or a reader-writer lock that processes share
// (shared_semaphores.h, shared_mutexes.h, shared_rwlocks.h), or has left a barrier that they share.
// `Real` makes the call: it sets `result`, 0 or -1, and `error`. That of a barrier takes nothing,
// and `error` is what it returned.
struct AcquireCall {
  uint64_t key = 0;  // of what is taken, the same in every run
  sem_t* semaphore = nullptr;
  pthread_mutex_t* mutex = nullptr;        // one of both; none: `Real` alone takes it
  std::atomic<uint32_t>* order = nullptr;  // how often it has been taken, by all processes
  bool tries = false;       // sem_trywait and the like: the program does not want to wait
  bool gives_back = false;  // a wait for a condition variable: it has the mutex. Also a barrier
  int result = 0;
  int error = 0;  // an errno; also of a wait whose time was over, which has the mutex
  void (*real)(AcquireCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
};

// The program waits for descriptors that only its own processes have (hooks/own_pipes.h), by
// whichever function. `Real` makes the call as the program made it; `Look` waits for `timeout_ms`
// with poll, which changes nothing that the program could see. Both set `result`, errno, and
// `revents` of each descriptor.
inline constexpr uint8_t kUnknownDescriptor = 0xff;
struct PollCall {
  pollfd* descriptors = nullptr;
  nfds_t count = 0;
  int timeout_ms = 0;
  // The key of the only pipe that is asked for by poll, the same in every run; 0: there are
  // several, or the pipe has no entry.
  uint64_t key = 0;
  int result = 0;
  // For epoll: positions of the `result` descriptors that the program gets, in their order
  // (kUnknownDescriptor: of none of these). Null: there is no such order.
  uint8_t* told = nullptr;
  void (*real)(PollCall& call, void* context) = nullptr;
  void (*look)(PollCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
  void Look() { look(*this, context); }
};

// The program reads an eventfd. `Real` sets `value`, or `error` if it fails.
struct CountCall {
  int fd = -1;
  uint64_t value = 0;
  int error = 0;
  void (*real)(CountCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
};

// Python's collector of reference cycles begins on the calling thread, or has ended there. What it
// finalizes may meet other processes.
struct Collection {
  uint32_t generation = 0;
  bool ended = false;
  bool has_threads = false;  // of Python's, beside the first one
};
// Runs the collector on the calling thread, which may have the interpreter's lock or not.
using Collector = void (*)(int generation);

class MeetingCalls {
 public:
  virtual void OnAcquire(AcquireCall& call) { call.Real(); }
  virtual void OnPoll(PollCall& call) { call.Real(); }
  virtual void OnCount(CountCall& call) { call.Real(); }
  // Reads and writes of pipes of the rank's own (hooks/own_pipes.h). They make the real call.
  virtual void OnPipeRead(OwnPipe& pipe, Transfer& transfer) {
    (void)pipe;
    transfer.Real();
  }
  virtual void OnPipeWrite(OwnPipe& pipe, Transfer& transfer) {
    (void)pipe;
    transfer.Real();
  }
  // The table of these; null: they are not followed. Within the guard.
  virtual PipeTable* Pipes() { return nullptr; }

  virtual void OnCollection(const Collection& collection) { (void)collection; }
  // Nothing of Python's runs between this and what the collector finds.
  virtual void OnCollectionLooks() {}
  // In a replay: `collector` is called where the recorded one ran, until another takes its place
  // (null: none). True: Python's own should not run by itself.
  virtual bool KeepsCollections(Collector collector) {
    (void)collector;
    return false;
  }

 protected:
  ~MeetingCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_MEETING_CALLS_H_
