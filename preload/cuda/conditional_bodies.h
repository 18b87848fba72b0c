// Which captures go into bodies of conditional nodes, as the hooks on the driver see it
// (preload/hooks/cuda). Bodies cannot have host functions or events. NVIDIA's driver says so when
// the program instantiates the graph, not when such a node is added.
//
// Process-wide. Any thread; nothing is allocated. The latest ones are known: kBodies graphs, and
// kCaptures captures.
#ifndef DEJA_PRELOAD_CUDA_CONDITIONAL_BODIES_H_
#define DEJA_PRELOAD_CUDA_CONDITIONAL_BODIES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/runtime/spin_lock.h"
#include "include/compat/cuda.h"

namespace deja::preload {

class ConditionalBodies {
 public:
  // Those of this process.
  static ConditionalBodies& Get();

  // These graphs are bodies of a conditional node.
  void AddBodies(std::span<const CUgraph> bodies);
  // True if the graph is one.
  bool IsBody(CUgraph graph);
  // What is captured on the stream now goes into a body. `ask` is the driver's
  // cuStreamGetCaptureInfo of CUDA 10.1, which tells a capture's number.
  using AskCapture = CUresult (*)(CUstream, CUstreamCaptureStatus*, unsigned long long*);
  void AddCapture(AskCapture ask, CUstream stream);
  // True if what the calling thread puts on the stream now goes into a body.
  bool Receive(CUstream stream);

 private:
  static constexpr size_t kBodies = 1024;
  static constexpr size_t kCaptures = 1024;

  std::atomic<AskCapture> ask_{nullptr};
  SpinLock lock_;  // of what follows
  std::array<CUgraph, kBodies> bodies_{};
  std::array<uint64_t, kCaptures> captures_{};  // their numbers + 1
  size_t next_body_ = 0;
  size_t next_capture_ = 0;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CUDA_CONDITIONAL_BODIES_H_
