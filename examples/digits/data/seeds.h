// Where seeds come from: --seed, or what differs from run to run.
#ifndef DEJA_EXAMPLES_DIGITS_DATA_SEEDS_H_
#define DEJA_EXAMPLES_DIGITS_DATA_SEEDS_H_

#include <cstdint>
#include <optional>

namespace digits {

enum class SeedUse : uint64_t {
  kWeights = 1,
  kDropout,
  kSampleWeights,
  kFault,
  kShuffle,
  kAugment
};

// Immutable: may be used by several threads. Every rank draws its own seeds, with --seed as well.
class Seeds {
 public:
  Seeds(std::optional<uint64_t> fixed, int rank);

  // A seed for `use`; `index` tells several of the same use apart (the epoch, for instance).
  // Without --seed, each call draws new entropy on the calling thread.
  uint64_t Draw(SeedUse use, uint64_t index = 0) const;

 private:
  std::optional<uint64_t> fixed_;
  uint64_t process_;  // the rank with --seed; else time, process id and rank
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_DATA_SEEDS_H_
