#include "format/scratch/created_names.h"

#include <charconv>
#include <string_view>

#include "api/libc_table.h"
#include "common/os/text_file.h"

namespace deja::format {

std::string CreatedNameFinder::Add(uint32_t thread, uint32_t api, std::string_view data) {
  constexpr std::string_view kPattern = "XXXXXX";
  if (api::InputKindOf(api) == api::InputKind::kCreated) {
    last_[thread] = data;
    const bool is_pattern = data.find(kPattern) != std::string_view::npos;
    return is_pattern || !data.starts_with('/') ? std::string() : std::string(data);
  }
  if (api != static_cast<uint32_t>(api::LibcApi::kmkstemp) &&
      api != static_cast<uint32_t>(api::LibcApi::kmkdtemp))
    return {};
  std::string& path = last_[thread];
  const size_t letters = path.rfind(kPattern);
  if (letters == std::string::npos || data.size() != kPattern.size()) return {};
  path.replace(letters, data.size(), data);
  return path.starts_with('/') ? path : std::string();
}

// One TIME, space, 0 or 1, space, PATH and a zero byte for each: a path may have a line's end.
Status WriteCreatedNames(const std::string& path, const std::vector<CreatedName>& names) {
  std::string text;
  for (const CreatedName& name : names) {
    text += std::to_string(name.time_ns) + (name.was_there ? " 1 " : " 0 ") + name.path;
    text += '\0';
  }
  return WriteTextFile(path, text);
}

std::vector<CreatedName> ReadCreatedNames(const std::string& path) {
  std::vector<CreatedName> names;
  const auto text = ReadTextFile(path);
  if (!text) return names;
  constexpr std::string_view kFlag = " 0 ";
  std::string_view rest = *text;
  for (size_t end = 0; (end = rest.find('\0')) != std::string_view::npos;
       rest.remove_prefix(end + 1)) {
    CreatedName name;
    const char* last = rest.data() + end;
    const auto [at, error] = std::from_chars(rest.data(), last, name.time_ns);
    if (error != std::errc() || last - at <= static_cast<std::ptrdiff_t>(kFlag.size())) break;
    name.was_there = at[1] == '1';
    name.path.assign(at + kFlag.size(), last);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace deja::format
