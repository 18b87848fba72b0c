// The number that tensors have in common which are likely to differ little (PayloadBases).
#ifndef DEJA_FORMAT_PAYLOAD_SERIES_H_
#define DEJA_FORMAT_PAYLOAD_SERIES_H_

#include <cstdint>

namespace deja::format {

inline constexpr uint32_t kMostSeries = (1u << 24) - 1;

// The number of the series that `name` stands for, from 1 to kMostSeries. Two that have the same
// number by chance may save less.
constexpr uint32_t SeriesNumber(uint64_t name) {
  const auto number = static_cast<uint32_t>((name + 1) * 0x9e3779b97f4a7c15 >> 40);
  return number == 0 ? 1 : number;
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOAD_SERIES_H_
