#include "format/trace/temp_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace deja::format {

Result<std::unique_ptr<TempFolder>> TempFolder::Make() {
  const char* base = std::getenv("TMPDIR");
  std::string path = base != nullptr && base[0] == '/' ? base : "/tmp";
  path += "/deja-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return FailErrno("making a temporary folder " + path + " (set TMPDIR to have it elsewhere)",
                     errno);
  }
  return std::unique_ptr<TempFolder>(new TempFolder(std::move(path)));
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace deja::format
