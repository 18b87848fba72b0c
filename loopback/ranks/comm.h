// A communicator, as one rank of it sees it.
//
// Owned by the program through its handle: made by ncclCommInit* and the like, deleted by
// ncclCommDestroy or ncclCommAbort. Any thread may look at the atomics; everything else belongs to
// the thread that runs the operation whose turn it is (Turnstile).
#ifndef DEJA_LOOPBACK_RANKS_COMM_H_
#define DEJA_LOOPBACK_RANKS_COMM_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compat/nccl.h"
#include "loopback/arithmetic/reduce.h"
#include "loopback/ranks/process.h"
#include "loopback/ranks/shared_area.h"

namespace deja::loopback {

// Serves operations one after the other, in the order in which they were issued, whichever threads
// run them.
class Turnstile {
 public:
  uint64_t Take() { return issued_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] bool IsTurnOf(uint64_t ticket) const {
    return served_.load(std::memory_order_acquire) == ticket;
  }
  void Leave() { served_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<uint64_t> issued_{0};
  std::atomic<uint64_t> served_{0};
};

// What ncclConfig_t says that matters here.
struct Settings {
  bool blocking = true;
  std::string name;
};

struct UserOperator {
  bool in_use = false;
  ncclDataType_t dtype = ncclInt8;
  bool by_pointer = false;  // read when it is used
  const void* pointer = nullptr;
  unsigned char scalar[8] = {};
};

struct Registration {
  void* buffer = nullptr;
  size_t bytes = 0;
};

}  // namespace deja::loopback

struct ncclComm {
  int rank = -1;
  int nranks = 0;
  int device = 0;
  deja::loopback::Settings settings;

  // Valid once the communicator is ready.
  deja::loopback::SharedArea area;
  std::atomic<bool> ready{false};

  std::atomic<bool> aborted{false};
  std::atomic<bool> revoked{false};
  // What runs is to give up; the communicator goes on.
  std::atomic<bool> stopping{false};
  std::atomic<bool> finalized{false};
  std::atomic<bool> suspended{false};
  // The error that ended the communicator's use; sticky.
  std::atomic<ncclResult_t> failure{ncclSuccess};
  // Operations of a non-blocking communicator that are not done yet.
  std::atomic<int> pending{0};
  // Threads that run operations on it now.
  std::atomic<int> users{0};

  deja::loopback::Turnstile collectives;
  deja::loopback::Turnstile control;
  std::vector<deja::loopback::Turnstile> sends;     // by peer
  std::vector<deja::loopback::Turnstile> receives;  // by peer
  uint64_t rounds[deja::loopback::kBoards] = {};    // of each board, so far
  std::atomic<uint64_t> children{0};                // communicators made from this one

  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // guards what follows
  std::vector<deja::loopback::UserOperator> operators;
  std::vector<std::unique_ptr<deja::loopback::Registration>> registrations;
  std::map<uint64_t, uint64_t> shrinks;  // how often by hash of who was excluded
  bool has_grow_id = false;              // ncclCommGetUniqueId was called and not used yet
  ncclUniqueId grow_id{};
  // The identities of the ranks, where they were known before they joined (a communicator made from
  // another).
  std::vector<deja::loopback::ProcessId> expected;

  // After rank and nranks are known.
  void Size();
  // Sets the error if there was none.
  void Break(ncclResult_t result);
  // Whether the process of `peer` has ended, or has given the communicator up.
  [[nodiscard]] bool HasLeft(int peer) const;
  // The process of `peer`; all zero while that is not known.
  [[nodiscard]] deja::loopback::ProcessId ProcessOf(int peer) const;
};

namespace deja::loopback {

// Live communicators, so that a handle that is none is told from one that is.
void AddComm(ncclComm* comm);
void RemoveComm(ncclComm* comm);
bool IsComm(const ncclComm* comm);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_COMM_H_
