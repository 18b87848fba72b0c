// Groups: what a thread collects between ncclGroupStart and the outermost ncclGroupEnd.
//
// A call outside of a group is a group of its own. Thread-local; nothing is shared.
#ifndef DEJA_LOOPBACK_RANKS_GROUP_H_
#define DEJA_LOOPBACK_RANKS_GROUP_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "loopback/ranks/op.h"

namespace deja::loopback {

class Group {
 public:
  // The calling thread's.
  static Group& Current();

  void Start() { ++depth_; }
  // Ends the innermost group; at the outermost, runs what was collected. ncclInProgress: its
  // communicators are non-blocking, and a thread goes on with it.
  ncclResult_t End();
  // Ends the innermost group without running it; estimates how long it would take, in microseconds.
  ncclResult_t SimulateEnd(float* estimated_time);
  // Remembers that a call of the group failed: the group then runs nothing and returns the error.
  ncclResult_t Fail(ncclResult_t result);

  // `waits_on` is the communicator whose blocking setting counts and whose state shows the
  // progress.
  ncclResult_t Join(ncclComm* waits_on);
  void Add(std::unique_ptr<Op> op) { ops_.push_back(std::move(op)); }
  // A send to, or receive from, the rank itself.
  void AddToSelf(ncclComm* comm, void* buffer, size_t bytes, bool is_send);
  // Deletes the communicator when everything else is done.
  void AddDestroy(ncclComm* comm) { doomed_.push_back(comm); }

 private:
  struct ToSelf {
    ncclComm* comm;
    void* buffer;
    size_t bytes;
    bool is_send;
    bool done;
  };

  ncclResult_t Run();
  ncclResult_t CopyToSelf();
  void Discard();
  void Reset();

  int depth_ = 0;
  ncclResult_t error_ = ncclSuccess;
  OpList ops_;
  std::vector<ncclComm*> comms_;
  std::vector<ToSelf> to_self_;
  std::vector<ncclComm*> doomed_;
};

// Makes all operations that run on the communicator give up, and waits until they have.
void StopOperations(ncclComm* comm);
// Ends a communicator on this rank and deletes it. Waits for threads that are still in it.
void DeleteComm(ncclComm* comm, RankState last_state);

// A call of its own, or part of the thread's group: `prepare(group)` checks it and adds what it
// does.
template <typename Prepare>
ncclResult_t InGroup(const Prepare& prepare) {
  Group& group = Group::Current();
  group.Start();
  const ncclResult_t result = group.Fail(prepare(group));
  const ncclResult_t end = group.End();
  return result != ncclSuccess ? result : end;
}

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_GROUP_H_
