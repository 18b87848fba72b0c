#include "bucketed_reducer.h"

#include <pthread.h>

namespace digits {

BucketedReducer::BucketedReducer(const Communicator& comm, const Network& network,
                                 size_t bucket_bytes, float* gradients, Faults* faults)
    : comm_(comm),
      device_(network.device()),
      stream_(device_.NewStream()),
      done_(device_.NewEvent()),
      gradients_(gradients),
      faults_(faults) {
  size_t end = network.parameters();
  for (size_t layer = network.layers(); layer-- > 0;) {
    const size_t begin = network.offset(layer);
    if (begin == end ||
        (layer > 0 && network.offset(layer) > 0 && (end - begin) * sizeof(float) < bucket_bytes)) {
      continue;
    }
    buckets_.push_back({layer, begin, end, "gradient bucket " + std::to_string(buckets_.size()),
                        device_.NewEvent()});
    end = begin;
  }
  thread_ = std::thread(&BucketedReducer::Loop, this);
}

BucketedReducer::~BucketedReducer() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BucketedReducer::LayerReady(size_t i) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ready_ == buckets_.size() || buckets_[ready_].first_layer != i) return;
    device_.Record(buckets_[ready_].ready, device_.stream());
    ++ready_;
  }
  changed_.notify_all();
}

void BucketedReducer::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return reduced_ == buckets_.size(); });
  ready_ = reduced_ = 0;
  device_.Wait(device_.stream(), done_);
}

void BucketedReducer::Loop() {
  pthread_setname_np(pthread_self(), "reducer");
  device_.Enter();
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || reduced_ < ready_; });
    if (stop_) return;
    const Bucket& bucket = buckets_[reduced_];
    lock.unlock();
    device_.Wait(stream_, bucket.ready);
    Reduce(bucket);
    device_.Record(done_, stream_);
    lock.lock();
    ++reduced_;
    changed_.notify_all();
  }
}

void BucketedReducer::Reduce(const Bucket& bucket) {
  const size_t count = bucket.end - bucket.begin;
  float* const gradients = gradients_ + bucket.begin;
  if (bucket.begin > 0) {
    comm_.AllReduceSum(gradients, count, stream_, bucket.name.c_str());
    return;
  }
  if (faults_->SkipsCollective()) return;
  comm_.AllReduceSum(gradients, faults_->Count(count), stream_, bucket.name.c_str());
  faults_->MaybeCorrupt(device_, stream_, gradients, count);
}

}  // namespace digits
