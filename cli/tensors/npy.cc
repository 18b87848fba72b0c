#include "cli/tensors/npy.h"

#include <fmt/format.h>

#include <array>

namespace deja::cli {

std::string NpyHeader(uint32_t dtype, uint64_t count) {
  // By the numbers of common/data_types.def; anything else is bytes.
  constexpr std::array<const char*, 12> kTypes = {"|i1", "|u1", "<i4", "<u4", "<i8", "<u8",
                                                  "<f2", "<f4", "<f8", "<u2", "|u1", "|u1"};
  constexpr size_t kBefore = 10;
  constexpr size_t kAlignment = 64;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                                 dtype < kTypes.size() ? kTypes[dtype] : "|u1", count);
  text.append(kAlignment - (kBefore + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace deja::cli
