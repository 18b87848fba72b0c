#include "cli/tensors/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/output.h"
#include "common/text/hex_text.h"
#include "digest/digest.h"

namespace deja::cli {
namespace {

constexpr size_t kFirstElements = 8;
constexpr size_t kBarWidth = 40;

double NormOf(const format::TensorStats& stats) {
  return std::sqrt(stats.sum_squares);
}

std::string HashOf(const format::Tensor& tensor) {
  return HexText(
      {reinterpret_cast<const char*>(tensor.hash.bytes.data()), tensor.hash.bytes.size()});
}

std::vector<std::string> FirstElements(const TensorView& view) {
  const size_t size = digest::ElementSize(view.found.tensor.dtype);
  std::vector<std::string> texts;
  for (size_t at = 0; size != 0 && at + size <= view.bytes.size() && texts.size() < kFirstElements;
       at += size)
    texts.push_back(digest::ElementText(view.bytes.data() + at, view.found.tensor.dtype));
  return texts;
}

}  // namespace

Histogram HistogramOf(std::span<const std::byte> bytes, uint32_t dtype) {
  Histogram histogram;
  const size_t size = digest::ElementSize(dtype);
  const auto for_each = [&](const auto& act) {
    for (size_t at = 0; size != 0 && at + size <= bytes.size(); at += size)
      if (const double value = digest::ElementAsDouble(bytes.data() + at, dtype);
          std::isfinite(value))
        act(value);
  };
  bool is_first = true;
  for_each([&](double value) {
    histogram.least = is_first ? value : std::min(histogram.least, value);
    histogram.greatest = is_first ? value : std::max(histogram.greatest, value);
    is_first = false;
  });
  // Halves, so that the span of all doubles is finite.
  const double span = histogram.greatest / 2 - histogram.least / 2;
  for_each([&](double value) {
    const double part = span > 0 ? (value / 2 - histogram.least / 2) / span : 0;
    const auto bin = static_cast<size_t>(part * Histogram::kBins);
    ++histogram.counts[std::min(bin, Histogram::kBins - 1)];
  });
  return histogram;
}

std::vector<std::string> TensorLines(const TensorView& view) {
  const format::Tensor& tensor = view.found.tensor;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {}, {}[{}]", view.place, NameOf(view.found.role),
                              digest::DTypeText(tensor.dtype), tensor.count));
  lines.push_back("  hash      " + HashOf(tensor));
  lines.push_back(
      fmt::format("  numbers   {} NaN, {} infinite, min {}, max {}, sum {}, norm {}",
                  HumanCount(tensor.stats.nan_count), HumanCount(tensor.stats.inf_count),
                  digest::DoubleText(tensor.stats.min), digest::DoubleText(tensor.stats.max),
                  digest::DoubleText(tensor.stats.sum), digest::DoubleText(NormOf(tensor.stats))));
  if (view.bytes.empty()) {
    if (!view.why_no_bytes.empty()) lines.push_back("  elements  " + view.why_no_bytes);
    return lines;
  }
  lines.push_back(fmt::format("  elements  {}{}", fmt::join(FirstElements(view), " "),
                              tensor.count > kFirstElements ? " …" : ""));
  const Histogram histogram = HistogramOf(view.bytes, tensor.dtype);
  const uint64_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
  for (size_t i = 0; i < Histogram::kBins && most != 0; ++i) {
    const auto edge = [&](size_t bin) {
      const double part = static_cast<double>(bin) / Histogram::kBins;
      return histogram.least * (1 - part) + histogram.greatest * part;
    };
    const std::string bar(histogram.counts[i] * kBarWidth / most, '#');
    lines.push_back(fmt::format("  {:>12.4g} … {:<12.4g} {:>12} {}", edge(i), edge(i + 1),
                                HumanCount(histogram.counts[i]), bar));
  }
  return lines;
}

nlohmann::json TensorJson(const TensorView& view) {
  const format::Tensor& tensor = view.found.tensor;
  nlohmann::json json = {{"is_result", view.found.role == TensorRole::kResult},
                         {"dtype", digest::DTypeText(tensor.dtype)},
                         {"count", tensor.count},
                         {"hash", HashOf(tensor)},
                         {"nan_count", tensor.stats.nan_count},
                         {"inf_count", tensor.stats.inf_count},
                         {"min", tensor.stats.min},
                         {"max", tensor.stats.max},
                         {"sum", tensor.stats.sum},
                         {"norm", NormOf(tensor.stats)},
                         {"kept", !view.bytes.empty()}};
  if (view.bytes.empty()) return json;
  const Histogram histogram = HistogramOf(view.bytes, tensor.dtype);
  json["first_elements"] = FirstElements(view);
  json["histogram"] = {
      {"least", histogram.least}, {"greatest", histogram.greatest}, {"counts", histogram.counts}};
  return json;
}

std::string DifferenceText(const digest::ElementDifference& difference, uint64_t count,
                           const std::string& other) {
  if (!difference.found) return fmt::format("equal to that of {}", other);
  const std::string ulps = difference.ulps == UINT64_MAX
                               ? ""
                               : fmt::format(", {} ULPs apart", HumanCount(difference.ulps));
  return fmt::format("differs from {} in {} of {} elements, first [{}]: {} and {}{}", other,
                     HumanCount(difference.different), HumanCount(count), difference.first,
                     difference.a, difference.b, ulps);
}

}  // namespace deja::cli
