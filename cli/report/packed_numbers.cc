#include "cli/report/packed_numbers.h"

namespace deja::cli {

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

void PackedNumbers::Add(uint64_t number) {
  for (; number >= 128; number >>= 7) bytes_ += static_cast<char>(number | 128);
  bytes_ += static_cast<char>(number);
}

void PackedNumbers::AddSigned(int64_t number) {
  Add(static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63));
}

}  // namespace deja::cli
