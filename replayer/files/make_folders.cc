#include "replayer/files/make_folders.h"

#include <sys/stat.h>

#include <cerrno>

namespace deja::replayer {

bool MakeFolders(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return true;
  const size_t parent = path.rfind('/');
  if (errno != ENOENT || parent == std::string::npos || parent == 0) return false;
  return MakeFolders(path.substr(0, parent)) && (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST);
}

}  // namespace deja::replayer
