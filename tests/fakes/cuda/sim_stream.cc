#include "tests/fakes/cuda/sim_stream.h"

#include <pthread.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>

namespace cusim {
namespace {

// Late, and never by the same amount: what relies on luck fails soon.
void Delay() {
  static const long most = [] {
    const char* text = std::getenv("CUDA_SIM_DELAY_US");
    return text == nullptr ? 200L : std::atol(text);
  }();
  if (most <= 0) return;
  static thread_local uint64_t state = reinterpret_cast<uintptr_t>(&state);
  state = state * 6364136223846793005u + 1442695040888963407u;
  const timespec time{0, static_cast<long>((state >> 33) % static_cast<uint64_t>(most)) * 1000};
  nanosleep(&time, nullptr);
}

}  // namespace

void Mark::Reach() {
  ReachAt(0);
}

void Mark::ReachAt(uint64_t time_ns) {
  std::lock_guard hold(mutex_);
  reached_ = true;
  time_ns_ = time_ns;
  changed_.notify_all();
}

void Mark::Wait() {
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [this] { return reached_; });
}

bool Mark::reached() {
  std::lock_guard hold(mutex_);
  return reached_;
}

uint64_t Mark::time_ns() {
  std::lock_guard hold(mutex_);
  return time_ns_;
}

}  // namespace cusim

CUstream_st::CUstream_st(CUcontext its_context, bool is_blocking)
    : context(its_context), blocking(is_blocking) {
  // By the C library's function, as a driver that has nothing else.
  auto run = [](void* self) -> void* {
    static_cast<CUstream_st*>(self)->Run();
    return nullptr;
  };
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, this) == 0) pthread_detach(thread);
}

CUresult CUstream_st::Put(std::function<void()> work, CUgraphNodeType type) {
  if (capture != nullptr) {
    if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capture->nodes.push_back({type, std::move(work)});
    return CUDA_SUCCESS;
  }
  // The legacy stream and those that block wait for each other.
  std::vector<cusim::MarkPtr> before;
  {
    std::lock_guard hold(context->mutex);
    if (this == context->legacy) {
      for (CUstream_st* other : context->blocking) before.push_back(other->Tail());
    } else if (blocking && context->legacy != nullptr) {
      before.push_back(context->legacy->Tail());
    }
  }
  for (const cusim::MarkPtr& mark : before)
    if (mark != nullptr && !mark->reached()) Append([mark] { mark->Wait(); });
  Append(std::move(work));
  return CUDA_SUCCESS;
}

CUresult CUstream_st::PutAtLaunch(CUgraphNodeType type,
                                  std::function<std::function<void()>()> bind) {
  if (capture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  capture->nodes.push_back({type, nullptr, std::move(bind)});
  return CUDA_SUCCESS;
}

cusim::MarkPtr CUstream_st::Tail() {
  std::lock_guard hold(mutex_);
  return tail_;
}

void CUstream_st::Append(std::function<void()> work) {
  std::lock_guard hold(mutex_);
  tail_ = std::make_shared<cusim::Mark>();
  context->work.fetch_add(1);
  queue_.emplace_back(std::move(work), tail_);
  changed_.notify_one();
}

void CUstream_st::Run() {
  for (;;) {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [this] { return !queue_.empty(); });
    auto [work, mark] = std::move(queue_.front());
    queue_.pop_front();
    hold.unlock();
    cusim::Delay();
    work();
    mark->Reach();
    context->work.fetch_sub(1);
  }
}
