// Bytes as two hexadecimal digits each. Pure; any thread.
#ifndef DEJA_COMMON_TEXT_HEX_TEXT_H_
#define DEJA_COMMON_TEXT_HEX_TEXT_H_

#include <string>
#include <string_view>

namespace deja {

std::string HexText(std::string_view bytes);

}  // namespace deja

#endif  // DEJA_COMMON_TEXT_HEX_TEXT_H_
