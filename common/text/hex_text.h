// Bytes as two hexadecimal digits each. Pure; any thread.
#ifndef DEJA_COMMON_TEXT_HEX_TEXT_H_
#define DEJA_COMMON_TEXT_HEX_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace deja {

std::string HexText(std::string_view bytes);
// The other way; nullopt: an odd number of characters, or one that is no digit.
std::optional<std::string> BytesOfHex(std::string_view text);

}  // namespace deja

#endif  // DEJA_COMMON_TEXT_HEX_TEXT_H_
