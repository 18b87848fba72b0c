#include "preload/cuda/stream_scope.h"

namespace deja::preload {

StreamScope::StreamScope(const CudaDriver& driver, uint64_t stream) : driver_(driver) {
  driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  CUcontext current = nullptr;
  if (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS) return;
  context_ = current;
  // Handles below are names for the default streams of the current context.
  constexpr uint64_t kLastSpecial = 2;
  if (stream <= kLastSpecial) return;
  if (driver_.cuStreamGetCtx(StreamOf(stream), &context_) != CUDA_SUCCESS) context_ = nullptr;
  Enter(current);
}

StreamScope::StreamScope(const CudaDriver& driver, CUcontext context)
    : driver_(driver), context_(context) {
  driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  Enter(nullptr);
}

StreamScope::~StreamScope() {
  if (pushed_) driver_.cuCtxPopCurrent_v2(nullptr);
  driver_.cuThreadExchangeStreamCaptureMode(&mode_);
}

void StreamScope::Enter(CUcontext current) {
  if (context_ == nullptr || context_ == current) return;
  pushed_ = driver_.cuCtxPushCurrent_v2(context_) == CUDA_SUCCESS;
  if (!pushed_) context_ = nullptr;
}

}  // namespace deja::preload
