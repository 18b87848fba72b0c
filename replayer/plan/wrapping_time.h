// Sums of times that a trace names: it may name any number, and an overflow must stay defined.
#ifndef DEJA_REPLAYER_PLAN_WRAPPING_TIME_H_
#define DEJA_REPLAYER_PLAN_WRAPPING_TIME_H_

#include <cstdint>

namespace deja::replayer {

constexpr int64_t WrappingPlus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
constexpr int64_t WrappingMinus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_WRAPPING_TIME_H_
