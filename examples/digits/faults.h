// Bugs on demand (--fault). Each depends on what was drawn, so it comes at another step, on another
// rank, or not at all, in another run.
//
// `crash` and `nan` are in the code that draws: sampler.cc and sample_weights.cc ask only whether
// the bug is there. The others share one story: someone thought it clever to treat an unusually
// noisy batch in a special way, and forgot that the other ranks know nothing about it. They happen
// once a rank.
#ifndef DEJA_EXAMPLES_DIGITS_FAULTS_H_
#define DEJA_EXAMPLES_DIGITS_FAULTS_H_

#include <cstddef>

#include "deja.hpp"
#include "model/device.h"
#include "options.h"
#include "rng.h"

namespace digits {

// BeginStep() is called between steps, when no other thread asks; the rest by whichever thread is
// at work.
class Faults {
 public:
  Faults(Fault fault, uint64_t seed) : fault_(fault), rng_(seed) {}

  void BeginStep(float batch_noise);

  // desync: this rank leaves the last collective of the step's gradients out.
  bool SkipsCollective() const { return noisy_ && fault_ == Fault::kDesync; }

  // shape: how many of `count` elements this rank takes to the last collective of the step's
  // gradients.
  size_t Count(size_t count) const {
    return noisy_ && fault_ == Fault::kShape ? count - count / 4 : count;
  }

  // hang: does not return when this rank stops taking part.
  void MaybeHang() const;

  // corrupt: may change one bit of what a collective on `stream` has just delivered.
  void MaybeCorrupt(Device& device, Stream stream, float* received, size_t count);

 private:
  const Fault fault_;
  Rng rng_;
  bool noisy_ = false;
  bool spent_ = false;
  deja::Registered registered_[2] = {deja::Registered::State("fault rng", rng_),
                                     deja::Registered::State("fault spent", spent_)};
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_FAULTS_H_
