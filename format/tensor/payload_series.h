// The number that tensors have in common which are likely to differ little (PayloadBases).
#ifndef DEJA_FORMAT_TENSOR_PAYLOAD_SERIES_H_
#define DEJA_FORMAT_TENSOR_PAYLOAD_SERIES_H_

#include <cstdint>

namespace deja::format {

inline constexpr uint32_t kMostSeries = (1u << 24) - 1;
// In the numbers of series that come with checkpoints, however many steps these are apart.
inline constexpr uint32_t kOfCheckpoints = 1u << 23;

// The number of the series that `name` stands for, at least 1 and below kOfCheckpoints. Two that
// have the same number by chance may save less.
constexpr uint32_t SeriesNumber(uint64_t name) {
  const auto number = static_cast<uint32_t>((name + 1) * 0x9e3779b97f4a7c15 >> 41);
  return number == 0 ? 1 : number;
}

// The same of a registered object.
constexpr uint32_t CheckpointSeries(uint64_t name) {
  return SeriesNumber(name) | kOfCheckpoints;
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_TENSOR_PAYLOAD_SERIES_H_
