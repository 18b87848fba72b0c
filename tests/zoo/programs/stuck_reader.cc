// One rank's loader thread never hands its batch over; the other ranks wait for it in a collective.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "zoo.h"

namespace {

class Queue {
 public:
  void Put() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++batches_;
    changed_.notify_one();
  }
  void Take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return batches_ > 0; });  // PLACE
    --batches_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int batches_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  World world;
  const int made = !IsFixed(argc, argv) && world.rank == 1 ? 5 : 10;
  Queue queue;
  std::thread loader([&] {
    for (int i = 0; i < made; ++i) queue.Put();
  });
  std::vector<float> gradient(100, 1.0f);
  for (int step = 0; step < 10; ++step) {
    queue.Take();
    CHECK(ncclAllReduce(gradient.data(), gradient.data(), gradient.size(), ncclFloat, ncclSum,
                        world.comm, nullptr));
  }
  loader.join();
  return 0;
}
