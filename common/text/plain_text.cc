#include "common/text/plain_text.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace deja {
namespace {

struct Character {
  uint32_t code = 0;
  size_t size = 1;
  bool is_utf8 = false;
};

Character CharacterAt(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr uint32_t kFirstOf[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return {first, 1, false};
  uint32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {first, 1, false};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kFirstOf[size] || code > 0x10ffff || is_surrogate) return {first, 1, false};
  return {code, size, true};
}

bool IsPlain(const Character& c) {
  if (!c.is_utf8) return false;
  const uint32_t code = c.code;
  const bool controls = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  // Invisible marks, and those by which what follows is shown in another order.
  const bool marks = code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
                     code == 0xfeff || (code >= 0xe0000 && code < 0xe0080);
  return !controls && !ends_line && !marks;
}

template <typename Escape>
std::string Written(std::string_view text, Escape escape) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = CharacterAt(text);
    if (IsPlain(c))
      out.append(text.substr(0, c.size));
    else
      escape(c, text, out);
    text.remove_prefix(c.size);
  }
  return out;
}

}  // namespace

bool IsPlainText(std::string_view text) {
  while (!text.empty()) {
    const Character c = CharacterAt(text);
    if (!IsPlain(c)) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

std::string PlainText(std::string_view text) {
  return Written(text, [](const Character& c, std::string_view, std::string& out) {
    char escape[16];
    if (c.code == '\n' || c.code == '\t')
      std::snprintf(escape, sizeof escape, "\\%c", c.code == '\n' ? 'n' : 't');
    else
      std::snprintf(escape, sizeof escape, c.code < 0x80 || !c.is_utf8 ? "\\x%02x" : "\\u{%x}",
                    static_cast<unsigned>(c.code));
    out += escape;
  });
}

std::string PlainJson(std::string_view json) {
  return Written(json, [](const Character& c, std::string_view text, std::string& out) {
    constexpr uint32_t kFirstPair = 0x10000;
    char escape[16];
    if (c.code < 0x20 || !c.is_utf8) {
      out.append(text.substr(0, c.size));  // white space between values
      return;
    }
    if (c.code < kFirstPair)
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c.code));
    else
      std::snprintf(escape, sizeof escape, "\\u%04x\\u%04x",
                    static_cast<unsigned>(0xd800 + ((c.code - kFirstPair) >> 10)),
                    static_cast<unsigned>(0xdc00 + ((c.code - kFirstPair) & 0x3ff)));
    out += escape;
  });
}

}  // namespace deja
