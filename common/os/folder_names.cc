#include "common/os/folder_names.h"

#include <mutex>
#include <utility>
#include <vector>

#include "common/runtime/futex.h"

namespace deja::format {
namespace {

struct Names {
  FutexMutex mutex;
  std::vector<std::pair<std::string, std::string>> names;  // folder and what it is called
};

Names& All() {
  static Names* const all = new Names;  // outlives every file
  return *all;
}

}  // namespace

void CallFolder(const std::string& folder, const std::string& name) {
  const std::lock_guard<FutexMutex> lock(All().mutex);
  for (auto& [known, called] : All().names) {
    if (known != folder) continue;
    called = name;
    return;
  }
  All().names.emplace_back(folder, name);
}

std::string NameInMessages(const std::string& path) {
  const std::lock_guard<FutexMutex> lock(All().mutex);
  for (const auto& [folder, name] : All().names) {
    if (path.compare(0, folder.size(), folder) != 0) continue;
    if (path.size() == folder.size() || path[folder.size()] == '/')
      return name + path.substr(folder.size());
  }
  return path;
}

}  // namespace deja::format
