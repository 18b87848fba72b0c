// JsonLine: one JSON object, built into a fixed buffer.
//
// For the replay's report, which is also written by signal handlers: allocates nothing, calls
// nothing that a handler may not call. What does not fit is left out, the object then says "cut",
// and is still closed properly. Not thread-safe; a value.
#ifndef DEJA_FORMAT_SCRATCH_JSON_LINE_H_
#define DEJA_FORMAT_SCRATCH_JSON_LINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deja::format {

class JsonLine {
 public:
  // Starts the object: {"kind":"…".
  explicit JsonLine(std::string_view kind);

  void Add(const char* key, std::string_view text);
  void Add(const char* key, const char* text) { Add(key, std::string_view(text)); }
  void Add(const char* key, uint64_t value);
  void Add(const char* key, int64_t value);
  void Add(const char* key, uint32_t value) { Add(key, static_cast<uint64_t>(value)); }
  void Add(const char* key, int32_t value) { Add(key, static_cast<int64_t>(value)); }
  void Add(const char* key, bool value);
  // Not in signal handlers. Seventeen digits; NaN and infinities as strings.
  void AddDouble(const char* key, double value);
  // At most 64 bytes.
  void AddHex(const char* key, std::string_view bytes);

  // Nested: OpenArray("frames"), then OpenObject/Close per element, then Close.
  void OpenArray(const char* key);
  void OpenObject(const char* key = nullptr);
  void Close();

  // Closes everything and ends the line.
  std::string_view Finish();

 private:
  [[nodiscard]] bool Fits(size_t bytes) const;
  [[nodiscard]] bool HasRoom();
  void Open(const char* key, char opening, char closing);
  void Key(const char* key);
  void Put(char c);
  void PutAll(std::string_view text);
  void PutNumber(uint64_t value);

  static constexpr size_t kSize = 48 << 10;
  static constexpr size_t kReserve = 64;  // for what Finish must still write
  std::array<char, kSize> buffer_;
  size_t size_ = 0;
  std::array<char, 16> open_{};  // closing brackets
  size_t depth_ = 0;
  size_t skipped_ = 0;  // open ones that were left out
  bool first_ = true;
  bool full_ = false;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_SCRATCH_JSON_LINE_H_
