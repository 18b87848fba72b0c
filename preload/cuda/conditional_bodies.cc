#include "preload/cuda/conditional_bodies.h"

#include <algorithm>

namespace deja::preload {
namespace {

// 0: nothing is captured.
uint64_t NumberOf(ConditionalBodies::AskCapture ask, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  unsigned long long id = 0;
  const bool captures =
      ask(stream, &status, &id) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return captures ? id + 1 : 0;
}

}  // namespace

ConditionalBodies& ConditionalBodies::Get() {
  static constinit ConditionalBodies bodies;
  return bodies;
}

void ConditionalBodies::AddBodies(std::span<const CUgraph> bodies) {
  Hold hold(lock_);
  for (CUgraph body : bodies) bodies_[next_body_++ % kBodies] = body;
}

bool ConditionalBodies::IsBody(CUgraph graph) {
  Hold hold(lock_);
  return std::find(bodies_.begin(), bodies_.end(), graph) != bodies_.end();
}

void ConditionalBodies::AddCapture(AskCapture ask, CUstream stream) {
  const uint64_t number = NumberOf(ask, stream);
  if (number == 0) return;
  Hold hold(lock_);
  captures_[next_capture_++ % kCaptures] = number;
  ask_.store(ask, std::memory_order_release);
}

bool ConditionalBodies::Receive(CUstream stream) {
  const AskCapture ask = ask_.load(std::memory_order_acquire);
  if (ask == nullptr) return false;
  const uint64_t number = NumberOf(ask, stream);
  Hold hold(lock_);
  return number != 0 && std::find(captures_.begin(), captures_.end(), number) != captures_.end();
}

}  // namespace deja::preload
