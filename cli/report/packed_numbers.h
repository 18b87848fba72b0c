// Numbers as few bytes, as base64: how a report carries its timeline.
//
// A number takes seven bits a byte, the lowest first, the top bit set in all bytes but the last.
// Numbers with a sign are folded: 0, -1, 1, -2. page.js has the reader. Values; one thread.
#ifndef DEJA_CLI_REPORT_PACKED_NUMBERS_H_
#define DEJA_CLI_REPORT_PACKED_NUMBERS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace deja::cli {

std::string Base64(std::string_view bytes);

class PackedNumbers {
 public:
  void Add(uint64_t number);
  void AddSigned(int64_t number);
  [[nodiscard]] std::string Text() const { return Base64(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_REPORT_PACKED_NUMBERS_H_
