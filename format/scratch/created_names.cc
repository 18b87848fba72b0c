#include "format/scratch/created_names.h"

#include <charconv>
#include <string_view>

#include "common/os/text_file.h"

namespace deja::format {

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
