#include "format/tensor/tensor_sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace deja::format {
namespace {

constexpr size_t kMostRuns = 16;
constexpr size_t kLeastRuns = 4;
constexpr size_t kRunElements = 256;
constexpr double kEntropyCodingPays = 7.6;  // bits a byte; above, it saves less than it costs
constexpr double kSearchPays = 7.0;         // above, matches must be frequent to be worth a search
constexpr double kSlow = 6.5;               // bits a byte; coding more takes several times as long
constexpr double kSlowCosts = 0.2;          // a handicap, for a way that is as good without it
constexpr double kSparsePays = 0.985;       // of the bits otherwise: the zeros cost a pass
constexpr double kSomeZeros = 0.02;         // fewer cannot save that much

// The runs of consecutive elements that are looked at.
struct Runs {
  explicit Runs(size_t elements) : elements(elements) {
    // A sixteenth of the elements, but enough of them for the entropy of a byte to show.
    const size_t wanted = std::clamp(elements / (16 * kRunElements), kLeastRuns, kMostRuns);
    count = std::min(wanted, (elements + kRunElements - 1) / kRunElements);
  }
  [[nodiscard]] size_t Begin(size_t run) const {
    return count == 1 ? 0 : (elements - std::min(elements, kRunElements)) * run / (count - 1);
  }
  [[nodiscard]] size_t End(size_t run) const {
    return std::min(elements, Begin(run) + kRunElements);
  }
  size_t elements;
  size_t count;
};

template <typename U>
U LoadElement(std::span<const std::byte> in, size_t element) {
  U value;
  std::memcpy(&value, in.data() + element * sizeof(U), sizeof value);
  return value;
}

// x * log2(x) of the counts that a sample can have. Small tensors would spend most of their time in
// log2 otherwise.
class EntropyTable {
 public:
  EntropyTable() {
    for (size_t x = 2; x < terms_.size(); ++x) {
      terms_[x] = static_cast<float>(static_cast<double>(x) * std::log2(static_cast<double>(x)));
    }
  }
  [[nodiscard]] double Term(uint32_t count) const { return terms_[count]; }
  // Bits of one of two outcomes that were seen so often.
  [[nodiscard]] double Bits(uint32_t a, uint32_t b) const {
    return a + b == 0 ? 0 : (Term(a + b) - Term(a) - Term(b)) / (a + b);
  }

 private:
  std::array<float, kMostRuns * kRunElements + 1> terms_{};
};

const EntropyTable& Entropies() {
  static const EntropyTable table;
  return table;
}

PlaneSample Summarize(const std::array<uint32_t, 256>& counts, uint32_t total, uint32_t equal,
                      uint32_t pairs) {
  PlaneSample plane;
  if (total == 0) return plane;
  double terms = 0;
  uint64_t squares = 0;
  for (const uint32_t count : counts) {
    terms += Entropies().Term(count);
    squares += uint64_t{count} * count;
  }
  plane.entropy = (Entropies().Term(total) - terms) / total;
  const double by_chance = static_cast<double>(squares) / (static_cast<double>(total) * total);
  plane.constant = by_chance == 1.0;
  plane.equal_neighbours = pairs == 0 ? 0 : static_cast<double>(equal) / pairs;
  plane.runs = plane.equal_neighbours > 1.5 * by_chance + 0.02 && by_chance < 1.0;
  return plane;
}

template <typename U>
TensorSample SamplePlanes(std::span<const std::byte> in, bool rotate, bool without_zeros) {
  const Runs runs(in.size() / sizeof(U));
  std::array<std::array<uint32_t, 256>, sizeof(U)> counts{};
  std::array<uint32_t, sizeof(U)> equal{};
  uint32_t total = 0;
  uint32_t pairs = 0;
  for (size_t run = 0; run < runs.count; ++run) {
    bool first = true;
    U previous = 0;
    for (size_t i = runs.Begin(run); i < runs.End(run); ++i) {
      U value = LoadElement<U>(in, i);
      if (without_zeros && value == 0) continue;
      if (rotate) value = std::rotl(value, 1);
      for (size_t p = 0; p < sizeof(U); ++p) {
        const auto byte = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * p));
        ++counts[p][byte];
        const auto before = static_cast<uint8_t>(static_cast<uint64_t>(previous) >> (8 * p));
        equal[p] += !first && byte == before ? 1 : 0;
      }
      ++total;
      pairs += first ? 0 : 1;
      first = false;
      previous = value;
    }
  }
  TensorSample sample;
  sample.rotated = rotate;
  sample.sparse = without_zeros;
  for (size_t p = 0; p < sizeof(U); ++p)
    sample.planes[p] = Summarize(counts[p], total, equal[p], pairs);
  return sample;
}

struct Zeros {
  double share = 0;
  double flag_bits = 0;  // an element: to say whether it is zero
};

template <typename U>
Zeros SampleZeros(std::span<const std::byte> in) {
  const Runs runs(in.size() / sizeof(U));
  std::array<std::array<uint32_t, 2>, 2> follows{};
  uint32_t total = 0;
  uint32_t zeros = 0;
  for (size_t run = 0; run < runs.count; ++run) {
    size_t previous = LoadElement<U>(in, runs.Begin(run)) == 0;
    for (size_t i = runs.Begin(run); i < runs.End(run); ++i) {
      const size_t zero = LoadElement<U>(in, i) == 0;
      ++follows[previous][zero];
      previous = zero;
      zeros += zero;
      ++total;
    }
  }
  Zeros result;
  if (zeros == 0) return result;
  result.share = static_cast<double>(zeros) / total;
  for (const auto& [nonzero, zero] : follows)
    result.flag_bits += Entropies().Bits(nonzero, zero) * (nonzero + zero) / total;
  // Eight flags are a symbol, of one bit at least.
  result.flag_bits += 0.125;
  return result;
}

double Bits(const TensorSample& sample, size_t planes) {
  double bits = 0;
  for (size_t p = 0; p < planes; ++p) bits += sample.planes[p].Bits();
  return bits;
}

template <typename U>
TensorSample BetterRotation(std::span<const std::byte> in, bool without_zeros) {
  const TensorSample plain = SamplePlanes<U>(in, false, without_zeros);
  if (sizeof(U) == 1) return plain;
  // Rotation moves the sign to the lowest plane and fills the top plane with the exponent.
  const TensorSample rotated = SamplePlanes<U>(in, true, without_zeros);
  return Bits(rotated, sizeof(U)) < Bits(plain, sizeof(U)) ? rotated : plain;
}

}  // namespace

PlanePlan PlaneSample::Plan() const {
  if (constant) return PlanePlan::kCheckConstant;
  if (entropy > kSearchPays) {
    if (equal_neighbours > 0.25) return PlanePlan::kSearch;
    return entropy > kEntropyCodingPays ? PlanePlan::kStore : PlanePlan::kEntropy;
  }
  return runs ? PlanePlan::kSearch : PlanePlan::kEntropy;
}

double PlaneSample::Bits() const {
  const PlanePlan plan = Plan();
  if (plan == PlanePlan::kStore) return 8;
  // A symbol of a Huffman code has a bit at least.
  if (plan == PlanePlan::kEntropy && entropy < 1) return 1;
  return entropy > kSlow ? entropy + kSlowCosts : entropy;
}

template <typename U>
TensorSample SampleTensor(std::span<const std::byte> in) {
  const TensorSample dense = BetterRotation<U>(in, false);
  const Zeros zeros = SampleZeros<U>(in);
  if (zeros.share < kSomeZeros || zeros.share == 1) return dense;
  const TensorSample sparse = BetterRotation<U>(in, true);
  const double bits = zeros.flag_bits + (1 - zeros.share) * Bits(sparse, sizeof(U));
  return bits < kSparsePays * Bits(dense, sizeof(U)) ? sparse : dense;
}

template TensorSample SampleTensor<uint8_t>(std::span<const std::byte>);
template TensorSample SampleTensor<uint16_t>(std::span<const std::byte>);
template TensorSample SampleTensor<uint32_t>(std::span<const std::byte>);
template TensorSample SampleTensor<uint64_t>(std::span<const std::byte>);

}  // namespace deja::format
