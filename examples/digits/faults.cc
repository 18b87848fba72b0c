#include "faults.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "data/sampler.h"

namespace digits {

void Faults::BeginStep(float batch_noise) {
  noisy_ = !spent_ && batch_noise >= kUnusualNoise;
  spent_ = spent_ || noisy_;
}

void Faults::MaybeHang() const {
  if (!noisy_ || fault_ != Fault::kHang) return;
  // Waits for a better batch, which nobody is going to bring.
  std::mutex mutex;
  std::condition_variable better_batch;
  std::unique_lock<std::mutex> lock(mutex);
  better_batch.wait(lock, [] { return false; });
}

void Faults::MaybeCorrupt(Device& device, Stream stream, float* received, size_t count) {
  if (!noisy_ || fault_ != Fault::kCorrupt || count == 0) return;
  float* victim = received + rng_.Below(static_cast<uint32_t>(count));
  const uint32_t bit = 1u << (16 + rng_.Below(7));  // of the upper mantissa: wrong, but a number
  device.FlipBits(victim, bit, stream);
}

}  // namespace digits
