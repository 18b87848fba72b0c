// Sums the gradients of all ranks while the backward pass is still making more of them.
//
// Layers are put into buckets from the last to the first, as their gradients become ready. A full
// bucket goes to a thread that all-reduces one bucket after the other: the order is the same on all
// ranks. On a GPU the thread has a stream of its own, which waits for a bucket's gradients only.
#ifndef DEJA_EXAMPLES_DIGITS_BUCKETED_REDUCER_H_
#define DEJA_EXAMPLES_DIGITS_BUCKETED_REDUCER_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comms.h"
#include "faults.h"
#include "model/network.h"

namespace digits {

// For one thread. Between BeginStep's first LayerReady() and the end of Wait(), the communicator is
// the reducer's.
class BucketedReducer {
 public:
  // `gradients` has the network's layout, on its device. Everything must outlive the reducer.
  BucketedReducer(const Communicator& comm, const Network& network, size_t bucket_bytes,
                  float* gradients, Faults* faults);
  ~BucketedReducer();
  BucketedReducer(const BucketedReducer&) = delete;
  BucketedReducer& operator=(const BucketedReducer&) = delete;

  // Layer `i`'s gradient is complete, or will be when the device's stream comes here. Called for
  // every layer, last first, once a step.
  void LayerReady(size_t i);

  // Returns when all buckets of the step are reduced; on a GPU, when what is put on its stream from
  // now on comes after that.
  void Wait();

 private:
  struct Bucket {
    size_t first_layer;  // the one that completes it
    size_t begin;        // in the gradients
    size_t end;
    std::string name;
    Event ready;  // its gradients are complete
  };

  void Loop();
  void Reduce(const Bucket& bucket);

  const Communicator& comm_;
  Device& device_;
  const Stream stream_;  // the thread's own
  const Event done_;
  float* const gradients_;
  Faults* const faults_;
  std::vector<Bucket> buckets_;  // in the order in which they are reduced

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t ready_ = 0;    // by mutex_: buckets of this step that may be reduced
  size_t reduced_ = 0;  // by mutex_: and that are
  bool stop_ = false;   // by mutex_
  std::thread thread_;
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_BUCKETED_REDUCER_H_
