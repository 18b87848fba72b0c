#include "replayer/nccl/served_comm.h"

#include <utility>

#include "preload/cuda/buffer_pool.h"

namespace deja::replayer {

std::atomic<uint32_t> ServedComm::held_{0};

void ServedComm::HoldStream(uint64_t stream) {
  std::lock_guard<std::mutex> lock(gate_mutex_);
  if (let_go_) return;
  if (gate_ == nullptr) {
    gate_ = preload::TheDevice().NewGate();
    if (gate_ == nullptr) return;
    // What comes after it waits for the program, from here on.
    preload::SetDevicePatience(preload::BufferPool::kPatienceMs);
    held_.fetch_add(1, std::memory_order_release);
  }
  // If the driver refuses, the stream goes on, and the program finds its work done too early.
  (void)preload::TheDevice().Hold(stream, *gate_);
}

void ServedComm::AwaitLetGo() {
  std::unique_lock<std::mutex> lock(gate_mutex_);
  if (let_go_) return;
  if (!std::exchange(awaited_, true)) {
    preload::SetDevicePatience(preload::BufferPool::kPatienceMs);
    held_.fetch_add(1, std::memory_order_release);
  }
  lets_go_.wait(lock, [&] { return let_go_; });
}

void ServedComm::LetGo() {
  std::lock_guard<std::mutex> lock(gate_mutex_);
  if (let_go_) return;
  let_go_ = true;
  if (awaited_) held_.fetch_sub(1, std::memory_order_release);
  lets_go_.notify_all();
  if (gate_ == nullptr) return;
  gate_->Open();
  held_.fetch_sub(1, std::memory_order_release);
}

}  // namespace deja::replayer
