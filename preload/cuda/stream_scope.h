// StreamScope: while one lives, the calling thread's current context is that of a stream, and its
// calls do not disturb captures of other streams. The destructor restores the program's context and
// capture mode.
//
// On the stack of one thread.
#ifndef DEJA_PRELOAD_CUDA_STREAM_SCOPE_H_
#define DEJA_PRELOAD_CUDA_STREAM_SCOPE_H_

#include <cstdint>

#include "preload/cuda/driver.h"

namespace deja::preload {

class StreamScope {
 public:
  StreamScope(const CudaDriver& driver, uint64_t stream);
  StreamScope(const CudaDriver& driver, CUcontext context);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

  // Null: there is none.
  [[nodiscard]] CUcontext context() const { return context_; }

 private:
  void Enter(CUcontext current);

  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUcontext context_ = nullptr;
  bool pushed_ = false;
};

inline CUdeviceptr DeviceAddress(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

inline CUstream StreamOf(uint64_t handle) {
  return reinterpret_cast<CUstream>(handle);
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_STREAM_SCOPE_H_
