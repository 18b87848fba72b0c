// OrderedWork: runs jobs on all processors and hands their results over in the order in which the
// jobs were given.
//
// The number of jobs under way is limited: a thread that gives one more waits for the oldest. So
// memory is bounded by that number and what a job holds.
//
// Owner: one thread, which gives jobs and takes results; the work itself is done by the others (by
// the owner where there is one processor only).
#ifndef DEJA_FORMAT_PACK_ORDERED_WORK_H_
#define DEJA_FORMAT_PACK_ORDERED_WORK_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/result.h"

namespace deja::format {

class OrderedWork {
 public:
  struct Job {
    // On some thread; `worker` is below workers(), and no two threads have the same one at a time.
    std::function<void(size_t worker)> work;
    // On the owner's thread, afterwards.
    std::function<Status()> deliver;
  };

  // `threads`: 0: as many as there are processors, 64 at most.
  explicit OrderedWork(size_t threads = 0);
  // What has not been delivered never will be.
  ~OrderedWork();
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  [[nodiscard]] size_t workers() const { return workers_; }

  // Both deliver what is ready and return the first failure of a delivery, after which nothing more
  // is delivered until Discard().
  Status Give(Job job);
  Status Finish();  // waits for all
  // Waits for all and delivers nothing.
  void Discard();

  // Discards at its end, before what jobs refer to goes.
  class Scope {
   public:
    explicit Scope(OrderedWork& work) : work_(work) {}
    ~Scope() { work_.Discard(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OrderedWork& work_;
  };

 private:
  struct Entry {
    Job job;
    bool done = false;
  };
  void Run(size_t worker);
  // The oldest one. False if it is not ready and `wait` is false, or if there is none.
  bool DeliverOldest(bool wait);

  const size_t workers_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<Entry>> waiting_;  // for a thread
  bool ends_ = false;
  // The owner's:
  std::deque<std::shared_ptr<Entry>> under_way_;
  Status status_;
  std::vector<std::thread> threads_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_ORDERED_WORK_H_
