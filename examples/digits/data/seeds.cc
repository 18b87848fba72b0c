#include "seeds.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "../rng.h"

namespace digits {

Seeds::Seeds(std::optional<uint64_t> fixed, int rank)
    : fixed_(fixed), process_(static_cast<uint64_t>(rank)) {
  if (fixed_) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  process_ =
      Mix(process_ ^ Mix(static_cast<uint64_t>(now.count()))) ^ static_cast<uint64_t>(getpid());
}

uint64_t Seeds::Draw(SeedUse use, uint64_t index) const {
  const uint64_t key = Mix(process_ ^ Mix(static_cast<uint64_t>(use) ^ Mix(index)));
  if (fixed_) return Mix(key ^ *fixed_);
  // Either may be weak on some machine: std::random_device may be anything, getrandom may be
  // missing.
  uint64_t kernel = 0;
  if (getrandom(&kernel, sizeof kernel, 0) != sizeof kernel) kernel = 0;
  return Mix(key ^ kernel ^ (static_cast<uint64_t>(std::random_device{}()) << 32));
}

}  // namespace digits
