#include "digest/elements.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "digest/digest.h"

namespace deja::digest {
namespace {

// The shortest text that reads back as the same number.
template <typename Number>
std::string NumberText(Number value) {
  if (std::isnan(value)) return "nan";
  char text[40];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "?";
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

std::string DTypeText(uint64_t dtype) {
  const char* name = DTypeName(static_cast<uint32_t>(std::min<uint64_t>(dtype, UINT32_MAX)));
  return name == nullptr ? "type " + std::to_string(dtype) : name;
}

std::string DoubleText(double value) {
  return NumberText(value);
}

std::string ElementText(const std::byte* element, uint32_t dtype) {
  switch (dtype) {
    case 0:
      return std::to_string(Load<int8_t>(element));
    case 1:
      return std::to_string(Load<uint8_t>(element));
    case 2:
      return std::to_string(Load<int32_t>(element));
    case 3:
      return std::to_string(Load<uint32_t>(element));
    case 4:
      return std::to_string(Load<int64_t>(element));
    case 5:
      return std::to_string(Load<uint64_t>(element));
    case 7:
      return NumberText(Load<float>(element));
    case 8:
      return DoubleText(Load<double>(element));
    case 6:
    case 9:
    case 10:
    case 11:
      // Narrower than float: its shortest text is also theirs.
      return NumberText(static_cast<float>(ElementAsDouble(element, dtype)));
    default: {
      char text[8];
      std::snprintf(text, sizeof text, "0x%02x", static_cast<unsigned>(Load<uint8_t>(element)));
      return text;
    }
  }
}

ElementDifference CompareElements(std::span<const std::byte> a, std::span<const std::byte> b,
                                  uint32_t dtype) {
  ElementDifference out;
  const uint32_t size = std::max(ElementSize(dtype), 1u);
  const size_t count = std::min(a.size(), b.size()) / size;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* one = a.data() + i * size;
    const std::byte* other = b.data() + i * size;
    if (std::memcmp(one, other, size) == 0) continue;
    ++out.different;
    if (out.found) continue;
    out.found = true;
    out.first = i;
    out.a = ElementText(one, dtype);
    out.b = ElementText(other, dtype);
    out.ulps = UlpDistance(one, other, dtype);
  }
  return out;
}

}  // namespace deja::digest
