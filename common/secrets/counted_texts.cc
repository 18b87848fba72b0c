#include "common/secrets/counted_texts.h"

#include <algorithm>
#include <cstdint>

namespace deja {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kLongestValue = 4096;

bool MayBeInName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

struct Counted {
  size_t begin = 0;
  size_t end = 0;  // 0: there is none
};

// The text or bytes whose head is at `at`. The heads of pickle and of MessagePack are told apart by
// their first byte.
Counted TextAt(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t index) -> size_t { return static_cast<uint8_t>(bytes[index]); };
  const size_t left = bytes.size() - at;
  if (left == 0) return {};
  const size_t code = byte(at);
  size_t head = 0;
  size_t size = 0;
  switch (code) {
    case 0x8c:  // pickle: SHORT_BINUNICODE, SHORT_BINSTRING, SHORT_BINBYTES; MessagePack: str 8,
                // bin 8
    case 'U':
    case 'C':
    case 0xd9:
    case 0xc4:
      head = 2;
      if (left < head) return {};
      size = byte(at + 1);
      break;
    case 'X':  // pickle: BINUNICODE, BINSTRING, BINBYTES
    case 'T':
    case 'B':
      head = 5;
      if (left < head) return {};
      size = byte(at + 1) | byte(at + 2) << 8 | byte(at + 3) << 16 | byte(at + 4) << 24;
      break;
    case 0xda:  // MessagePack: str 16, bin 16
    case 0xc5:
      head = 3;
      if (left < head) return {};
      size = byte(at + 1) << 8 | byte(at + 2);
      break;
    default:
      if (code < 0xa0 || code > 0xbf) return {};
      head = 1;  // MessagePack: fixstr
      size = code & 0x1f;
  }
  if (size == 0 || size > left - head) return {};
  return {at + head, at + head + size};
}

// After what puts a text into pickle's memo.
size_t AfterMemo(std::string_view bytes, size_t at) {
  if (at >= bytes.size()) return at;
  switch (static_cast<uint8_t>(bytes[at])) {
    case 0x94:  // MEMOIZE
      return at + 1;
    case 'q':  // BINPUT
      return at + 2;
    case 'r':  // LONG_BINPUT
      return at + 5;
    default:
      return at;
  }
}

// After what stands before bytes in pickles of protocol 2, the first time and from then on: a call
// of _codecs.encode.
size_t AfterEncode(std::string_view bytes, size_t at) {
  constexpr std::string_view kEncode = "c_codecs\nencode\n";
  if (at >= bytes.size()) return at;
  if (bytes.substr(at, kEncode.size()) == kEncode) return AfterMemo(bytes, at + kEncode.size());
  if (bytes[at] == 'h') return at + 2;    // BINGET
  return bytes[at] == 'j' ? at + 5 : at;  // LONG_BINGET
}

}  // namespace

CountedPair FindCountedPair(std::string_view bytes, size_t from) {
  for (size_t at = from; at < bytes.size(); ++at) {
    const Counted name = TextAt(bytes, at);
    if (name.end == 0 || name.end - name.begin > kLongestName) continue;
    const std::string_view text = bytes.substr(name.begin, name.end - name.begin);
    if (!std::all_of(text.begin(), text.end(), MayBeInName)) continue;
    const size_t next = AfterEncode(bytes, AfterMemo(bytes, name.end));
    const Counted value = next < bytes.size() ? TextAt(bytes, next) : Counted{};
    if (value.end == 0 || value.end - value.begin > kLongestValue) continue;
    return {text, value.begin, value.end};
  }
  return {};
}

}  // namespace deja
