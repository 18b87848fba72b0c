#include "cli/pack/staged_output.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace deja::cli {
namespace {

constexpr char kStem[] = "deja-made-";

tl::unexpected<Error> Exists(const std::string& path) {
  return Fail(ErrorCode::kInvalidArgument,
              "writing: " + path + ": it exists already; remove it, or name another one");
}

bool IsThere(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

Status MoveTo(const std::string& from, const std::string& to) {
  int moved = renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  // File systems that cannot do so.
  if (moved != 0 && errno == EINVAL && !IsThere(to)) moved = rename(from.c_str(), to.c_str());
  if (moved == 0) return {};
  if (errno == EEXIST) return Exists(to);
  return FailErrno("writing: " + to, errno);
}

}  // namespace

Result<StagedOutput> StagedOutput::For(const std::string& path) {
  if (IsThere(path)) return Exists(path);
  const size_t slash = path.rfind('/');
  const std::string beside = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  DEJA_ASSIGN_OR_RETURN(auto folder,
                        format::TempFolder::Make(kStem, beside.empty() ? "." : beside));
  return StagedOutput(std::move(folder), beside,
                      slash == std::string::npos ? path : path.substr(slash + 1));
}

Result<std::vector<std::string>> StagedOutput::Publish(const std::vector<std::string>& made) const {
  std::vector<std::string> places;
  places.reserve(made.size());
  for (const std::string& path : made) {
    places.push_back(beside_ + path.substr(path.rfind('/') + 1));
    if (IsThere(places.back())) return Exists(places.back());
  }
  for (size_t i = made.size(); i > 0; --i) DEJA_RETURN_IF_ERROR(MoveTo(made[i - 1], places[i - 1]));
  return places;
}

}  // namespace deja::cli
