#include "cli/output_name.h"

#include <filesystem>

namespace deja::cli {

std::string OutputNameFor(const std::string& trace, std::string_view ending) {
  const std::filesystem::path path(trace);
  std::string name = path.filename().string();
  if (name.empty()) name = path.parent_path().filename().string();
  for (const std::string_view known : {".zip", ".deja"})
    if (name.size() > known.size() && name.ends_with(known)) name.erase(name.size() - known.size());
  return name.append(ending);
}

}  // namespace deja::cli
