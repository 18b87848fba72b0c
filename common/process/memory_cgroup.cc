#include "common/process/memory_cgroup.h"

#include <charconv>

#include "common/os/small_file.h"

namespace deja {
namespace {

constexpr std::string_view kCountName = "oom_kill ";

bool HasMemory(std::string_view controllers) {
  return ("," + std::string(controllers) + ",").find(",memory,") != std::string::npos;
}

void AddFiles(const std::string& mount, std::string_view path, const char* name,
              std::vector<std::string>& files) {
  if (path != "/") files.push_back(mount + std::string(path) + "/" + name);
  files.push_back(mount + "/" + name);
}

}  // namespace

std::vector<std::string> CgroupFiles(std::string_view membership) {
  std::vector<std::string> files;
  // A line is "NUMBER:CONTROLLERS:PATH"; that of version 2 has no controllers.
  while (!membership.empty()) {
    const size_t end = membership.find('\n');
    const std::string_view line = membership.substr(0, end);
    membership = end == std::string_view::npos ? "" : membership.substr(end + 1);
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (HasMemory(controllers)) {
      AddFiles("/sys/fs/cgroup/memory", path, "memory.oom_control", files);
    } else if (controllers.empty()) {
      AddFiles("/sys/fs/cgroup", path, "memory.events", files);
    }
  }
  return files;
}

std::optional<uint64_t> OomKills(const std::string& file) {
  char text[1024];
  std::string_view rest(text, ReadSmallFile(file.c_str(), text, sizeof text));
  while (!rest.empty()) {
    if (rest.starts_with(kCountName)) {
      rest.remove_prefix(kCountName.size());
      uint64_t count = 0;
      if (std::from_chars(rest.data(), rest.data() + rest.size(), count).ec != std::errc())
        return std::nullopt;
      return count;
    }
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return std::nullopt;
}

CgroupCount OwnCgroupCount() {
  char text[4096];
  const size_t size = ReadSmallFile("/proc/self/cgroup", text, sizeof text);
  for (std::string& file : CgroupFiles(std::string_view(text, size)))
    if (const auto count = OomKills(file)) return {std::move(file), *count};
  return {};
}

}  // namespace deja
