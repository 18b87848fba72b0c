// A tensor in words and as JSON: type, statistics, histogram, and where it differs from another.
//
// Pure; any thread.
#ifndef DEJA_CLI_TENSORS_TENSOR_TEXT_H_
#define DEJA_CLI_TENSORS_TENSOR_TEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/tensors/tensor_lookup.h"
#include "digest/elements.h"

namespace deja::cli {

// Finite elements by value, in equal parts from the least to the greatest.
struct Histogram {
  static constexpr size_t kBins = 16;
  double least = 0;
  double greatest = 0;
  std::array<uint64_t, kBins> counts{};
};
Histogram HistogramOf(std::span<const std::byte> bytes, uint32_t dtype);

// What is shown of one tensor. `bytes` is empty where they were not kept.
struct TensorView {
  FoundTensor found;
  std::string place;  // "rank 2, 0:412"
  std::span<const std::byte> bytes;
  std::string why_no_bytes;
};

std::vector<std::string> TensorLines(const TensorView& view);
nlohmann::json TensorJson(const TensorView& view);

// "differs from rank 3 in 12 of 6410 elements, first [5]: 0.5 and 0.25, 8388608 ULPs apart"
std::string DifferenceText(const digest::ElementDifference& difference, uint64_t count,
                           const std::string& other);

}  // namespace deja::cli

#endif  // DEJA_CLI_TENSORS_TENSOR_TEXT_H_
