// SHA-256, for files that are trusted by their digest: no two files with the same digest are known.
// (A trace names what it stores by faster hashes, which can be forged.) Any thread.
#ifndef DEJA_CLI_PROGRAMS_SHA256_H_
#define DEJA_CLI_PROGRAMS_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace deja::cli {

class Sha256 {
 public:
  void Update(std::string_view bytes);
  // 64 hexadecimal digits. The object is used up.
  std::string Finish();

 private:
  void Block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  size_t pending_size_ = 0;
  uint64_t size_ = 0;
};

Result<std::string> Sha256OfFile(const std::string& path);
// The digest of the files' contents, one after the other.
Result<std::string> Sha256OfFiles(const std::vector<std::string>& paths);

}  // namespace deja::cli

#endif  // DEJA_CLI_PROGRAMS_SHA256_H_
