#include "cli/replay/start/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "cli/output.h"

namespace deja::cli {

namespace fs = std::filesystem;

Status ScratchFolder::Open(const std::string& chosen, bool keep) {
  std::error_code error;
  if (!chosen.empty()) {
    fs::create_directories(chosen, error);
    if (error)
      return FailErrno(fmt::format("making the scratch folder '{}'", chosen), error.value());
    if (!fs::is_empty(chosen, error) || error)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("replaying: --scratch '{}': the folder is not empty; give a new one",
                              chosen));
    path_ = fs::canonical(chosen, error).string();
    return {};
  }
  if (!keep) {
    DEJA_ASSIGN_OR_RETURN(temporary_, format::TempFolder::Make("deja-replay-"));
    path_ = fs::canonical(temporary_->path(), error).string();
    return {};
  }
  std::string pattern = (fs::temp_directory_path(error) / "deja-replay-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    return FailErrno("making a scratch folder as " + pattern, errno);
  path_ = fs::canonical(pattern, error).string();
  Diagnose("the scratch folder is " + path_);
  return {};
}

Result<std::string> ScratchFolder::ForRank(uint32_t rank) const {
  const std::string path = fmt::format("{}/rank-{:05}", path_, rank);
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return FailErrno("making: " + path, error.value());
  return path;
}

}  // namespace deja::cli
