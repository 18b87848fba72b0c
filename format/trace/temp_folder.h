// TempFolder: a folder of our own in $TMPDIR or /tmp, for as long as somebody needs it.
//
// Threads: any; one at a time for each folder.
#ifndef DEJA_FORMAT_TRACE_TEMP_FOLDER_H_
#define DEJA_FORMAT_TRACE_TEMP_FOLDER_H_

#include <memory>
#include <string>
#include <utility>

#include "common/result.h"

namespace deja::format {

// Removed, with what is in it, by the destructor.
class TempFolder {
 public:
  static Result<std::unique_ptr<TempFolder>> Make();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_TEMP_FOLDER_H_
