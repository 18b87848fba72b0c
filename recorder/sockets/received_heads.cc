#include "recorder/sockets/received_heads.h"

#include <algorithm>
#include <utility>

namespace deja::recorder {

bool ReceivedHeads::Mask(std::span<char> bytes, uint64_t sent) {
  const std::string_view text(bytes.data(), bytes.size());
  if (std::exchange(sent_, sent) != sent || text.substr(0, 7) == "HTTP/1.") masker_.BeginMessage();
  // Up to where the head ends, so that bodies are not looked at.
  size_t end = std::min(text.find("\r\n\r\n"), text.find("\n\n"));
  end = end == std::string_view::npos ? bytes.size() : std::min(end + 4, bytes.size());
  return masker_.Mask(bytes.first(end));
}

bool ReceivedHeads::MayBegin(std::string_view bytes) {
  constexpr size_t kFew = 128;
  return bytes.size() <= kFew ||
         bytes.substr(0, bytes.find('\n')).find("HTTP/1.") != std::string_view::npos;
}

}  // namespace deja::recorder
