#include "preload/stack/python_frames.h"

#include <cstring>
#include <span>

namespace deja::preload {
namespace {

// The interpreter's own frames, which have no code of Python's, lie between the others.
constexpr size_t kMostFrames = 4 * kMaxPythonFrames;
constexpr size_t kMostText = 1024;

// PyASCIIObject.state, the same from 3.3 to 3.13.
constexpr uint32_t kKindShift = 2;
constexpr uint32_t kKindMask = 7;
constexpr uint32_t kIsCompact = 1U << 5;
constexpr uint32_t kIsAscii = 1U << 6;

template <typename T>
T At(const void* object, uint64_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
  return value;
}

uint32_t Character(const char* text, uint32_t size, uint64_t index) {
  if (size == 1) return At<uint8_t>(text, index);
  if (size == 2) return At<uint16_t>(text, index * 2);
  return At<uint32_t>(text, index * 4);
}

// UTF-8. Returns how many bytes; `out` has room for four.
size_t Encode(uint32_t character, char* out) {
  if (character < 0x80) {
    out[0] = static_cast<char>(character);
    return 1;
  }
  const size_t more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  const uint32_t head = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
  out[0] = static_cast<char>(head | (character >> (6 * more)));
  for (size_t i = 1; i <= more; ++i)
    out[i] = static_cast<char>(0x80 | ((character >> (6 * (more - i))) & 0x3F));
  return more + 1;
}

// A str of Python's, where it is or in `buffer`. Empty: it is none that can be read.
std::string_view Text(const PythonLayout& layout, const void* object, char (&buffer)[kMostText]) {
  if (object == nullptr) return {};
  const auto state = At<uint32_t>(object, layout.text_state);
  const auto length = At<uint64_t>(object, layout.text_length);
  const char* bytes = static_cast<const char*>(object) + layout.text_bytes;
  if ((state & kIsCompact) == 0) return {};
  if ((state & kIsAscii) != 0) return {bytes, length};
  const uint32_t kind = (state >> kKindShift) & kKindMask;
  size_t size = 0;
  for (uint64_t i = 0; i < length && size + 4 <= kMostText; ++i)
    size += Encode(Character(bytes + layout.more_of_text, kind, i), buffer + size);
  return {buffer, size};
}

// Calls see(frame, code) for the frames that have code of Python's, as long as it returns true.
template <typename See>
void ForEachFrame(const PythonLayout& layout, const void* state, See see) {
  const void* holder = layout.through == 0 ? state : At<const void*>(state, layout.through);
  if (holder == nullptr) return;
  const void* frame = At<const void*>(holder, layout.current_frame);
  for (size_t seen = 0; frame != nullptr && seen < kMostFrames;
       ++seen, frame = At<const void*>(frame, layout.previous)) {
    const void* code = At<const void*>(frame, layout.executable);
    if (code == nullptr || At<const void*>(code, layout.type) != layout.code_type) continue;
    if (!see(frame, code)) return;
  }
}

uint64_t LineOf(const PythonLayout& layout, const void* frame, const void* code) {
  int line = 0;
  if (layout.line_of_code == nullptr) {
    line = layout.line_of_frame(frame);
  } else {
    const auto start = reinterpret_cast<uint64_t>(code) + layout.instructions;
    line = layout.line_of_code(code, static_cast<int>(At<uint64_t>(frame, layout.place) - start));
  }
  return line < 0 ? 0 : static_cast<uint64_t>(line);
}

}  // namespace

void ReadPythonFrames(const PythonLayout& layout, const void* state, OwnFrames own,
                      PythonFrames& frames) {
  const bool hides = own == OwnFrames::kHidden && layout.own_folder != nullptr;
  const std::string_view hidden = hides ? layout.own_folder : "";
  char function_text[kMostText];
  char file_text[kMostText];
  ForEachFrame(layout, state, [&](const void* frame, const void* code) {
    const std::string_view file = Text(layout, At<const void*>(code, layout.file), file_text);
    if (hides && file.substr(0, hidden.size()) == hidden) return true;
    const uint32_t module =
        PythonModule(Text(layout, At<const void*>(code, layout.function), function_text), file);
    return module == 0 || frames.push_back({module, LineOf(layout, frame, code)});
  });
}

bool KeyOfPythonFrames(const PythonLayout& layout, const void* state, Hash128& key) {
  InlineVec<uint64_t, 4 * kMaxPythonFrames> words;
  ForEachFrame(layout, state, [&](const void* frame, const void* code) {
    words.push_back(reinterpret_cast<uint64_t>(code));
    words.push_back(At<uint64_t>(frame, layout.place));
    words.push_back(At<uint64_t>(code, layout.function));
    return words.push_back(At<uint64_t>(code, layout.file));
  });
  if (words.empty()) return false;
  key = digest::HashBytes(std::as_bytes(std::span(words.begin(), words.size())));
  return true;
}

}  // namespace deja::preload
