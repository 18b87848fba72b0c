#include "format/pack/ordered_work.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace deja::format {
namespace {

constexpr size_t kMostThreads = 64;
constexpr size_t kJobsOfAThread = 4;  // so that none waits for the owner

// Those on which this process may run.
size_t Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::thread::hardware_concurrency();
  return static_cast<size_t>(CPU_COUNT(&set));
}

}  // namespace

OrderedWork::OrderedWork(size_t threads)
    : workers_(std::clamp<size_t>(threads == 0 ? Processors() : threads, 1, kMostThreads)) {
  if (workers_ == 1) return;
  for (size_t i = 0; i < workers_; ++i) threads_.emplace_back([this, i] { Run(i); });
}

OrderedWork::~OrderedWork() {
  Discard();
  {
    const std::lock_guard hold(mutex_);
    ends_ = true;
  }
  given_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void OrderedWork::Run(size_t worker) {
  std::unique_lock hold(mutex_);
  for (;;) {
    given_.wait(hold, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::shared_ptr<Entry> entry = std::move(waiting_.front());
    waiting_.pop_front();
    hold.unlock();
    entry->job.work(worker);
    hold.lock();
    entry->done = true;
    done_.notify_one();
  }
}

Status OrderedWork::Give(Job job) {
  auto entry = std::make_shared<Entry>(Entry{std::move(job), false});
  under_way_.push_back(entry);
  if (threads_.empty()) {
    entry->job.work(0);
    entry->done = true;
  } else {
    const std::lock_guard hold(mutex_);
    waiting_.push_back(std::move(entry));
    given_.notify_one();
  }
  while (under_way_.size() > workers_ * kJobsOfAThread) DeliverOldest(true);
  while (DeliverOldest(false)) {
  }
  return status_;
}

bool OrderedWork::DeliverOldest(bool wait) {
  if (under_way_.empty()) return false;
  {
    std::unique_lock hold(mutex_);
    const Entry& oldest = *under_way_.front();
    if (!wait && !oldest.done) return false;
    done_.wait(hold, [&] { return oldest.done; });
  }
  const std::shared_ptr<Entry> oldest = std::move(under_way_.front());
  under_way_.pop_front();
  if (status_) status_ = oldest->job.deliver();
  return true;
}

Status OrderedWork::Finish() {
  while (DeliverOldest(true)) {
  }
  return status_;
}

void OrderedWork::Discard() {
  {
    // Jobs that no thread has begun need not be done.
    const std::lock_guard hold(mutex_);
    for (const std::shared_ptr<Entry>& entry : waiting_) entry->done = true;
    waiting_.clear();
  }
  for (const std::shared_ptr<Entry>& entry : under_way_)
    entry->job.deliver = [] { return Status(); };
  (void)Finish();
  status_ = {};
}

}  // namespace deja::format
