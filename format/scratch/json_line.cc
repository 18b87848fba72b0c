#include "format/scratch/json_line.h"

#include <cmath>
#include <cstdio>

namespace deja::format {

JsonLine::JsonLine(std::string_view kind) {
  OpenObject();
  Add("kind", kind);
}

bool JsonLine::Fits(size_t bytes) const {
  return !full_ && size_ + bytes + kReserve <= kSize;
}

// For a number and its key. Without it the line is cut.
bool JsonLine::HasRoom() {
  if (!Fits(128)) full_ = true;
  return !full_;
}

// Only after Fits.
void JsonLine::Put(char c) {
  buffer_[size_++] = c;
}

void JsonLine::PutAll(std::string_view text) {
  for (char c : text) Put(c);
}

void JsonLine::PutNumber(uint64_t value) {
  char digits[20];
  int n = 0;
  do {
    digits[n++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (n > 0) Put(digits[--n]);
}

void JsonLine::Key(const char* key) {
  if (!first_) Put(',');
  first_ = false;
  if (key == nullptr) return;
  Put('"');
  PutAll(key);
  Put('"');
  Put(':');
}

void JsonLine::Add(const char* key, std::string_view text) {
  // A value that would be cut is left out whole, so that the line stays valid.
  if (!Fits(6 * text.size() + 64)) {
    full_ = true;
    return;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  Key(key);
  Put('"');
  for (char c : text) {
    const auto u = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      Put('\\');
      Put(c);
    } else if (u < 0x20 || u >= 0x7f) {
      // Bytes above ASCII are passed as Latin-1 code points: always valid, and reversible.
      PutAll("\\u00");
      Put(kHex[u >> 4]);
      Put(kHex[u & 15]);
    } else {
      Put(c);
    }
  }
  Put('"');
}

void JsonLine::Add(const char* key, uint64_t value) {
  if (!HasRoom()) return;
  Key(key);
  PutNumber(value);
}

void JsonLine::Add(const char* key, int64_t value) {
  if (!HasRoom()) return;
  Key(key);
  if (value < 0) Put('-');
  PutNumber(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}

void JsonLine::Add(const char* key, bool value) {
  if (!HasRoom()) return;
  Key(key);
  PutAll(value ? "true" : "false");
}

void JsonLine::AddDouble(const char* key, double value) {
  if (!std::isfinite(value)) {
    Add(key, std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  if (!HasRoom()) return;
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  Key(key);
  for (const char* c = text; *c != '\0'; ++c) Put(*c == ',' ? '.' : *c);
}

void JsonLine::AddHex(const char* key, std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  char text[128];
  size_t n = 0;
  for (size_t i = 0; i < bytes.size() && n + 2 <= sizeof text; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    text[n++] = kHex[byte >> 4];
    text[n++] = kHex[byte & 15];
  }
  Add(key, std::string_view(text, n));
}

void JsonLine::Open(const char* key, char opening, char closing) {
  // What does not fit is left out with all that is in it.
  if (!Fits(128) || depth_ == open_.size()) {
    full_ = true;
    ++skipped_;
    return;
  }
  Key(key);
  Put(opening);
  open_[depth_++] = closing;
  first_ = true;
}

void JsonLine::OpenArray(const char* key) {
  Open(key, '[', ']');
}

void JsonLine::OpenObject(const char* key) {
  Open(key, '{', '}');
}

void JsonLine::Close() {
  if (skipped_ != 0) {
    --skipped_;
    return;
  }
  if (depth_ <= 1) return;
  buffer_[size_++] = open_[--depth_];  // kReserve keeps room for it
  first_ = false;
}

std::string_view JsonLine::Finish() {
  skipped_ = 0;
  while (depth_ > 1) Close();
  if (full_) PutAll(",\"cut\":true");  // kReserve keeps room for it
  buffer_[size_++] = '}';
  buffer_[size_++] = '\n';
  return {buffer_.data(), size_};
}

}  // namespace deja::format
