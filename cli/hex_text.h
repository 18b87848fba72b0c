// Bytes as two hexadecimal digits each. Pure; any thread.
#ifndef DEJA_CLI_HEX_TEXT_H_
#define DEJA_CLI_HEX_TEXT_H_

#include <string>
#include <string_view>

namespace deja::cli {

std::string HexText(std::string_view bytes);

}  // namespace deja::cli

#endif  // DEJA_CLI_HEX_TEXT_H_
