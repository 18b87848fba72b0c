// The folder in which replayed programs write.
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_START_SCRATCH_FOLDER_H_
#define DEJA_CLI_REPLAY_START_SCRATCH_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.h"
#include "format/trace/temporary_folder.h"

namespace deja::cli {

// Removed with the object unless the user wants it.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Makes the folder: `chosen`, which must be new or empty and stays. If `chosen` is empty, it is
  // one among the temporary files, which stays and is reported if `keep`.
  Status Open(const std::string& chosen, bool keep);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Makes the folder of a rank.
  [[nodiscard]] Result<std::string> ForRank(uint32_t rank) const;
  // The file by which ranks share the memory of devices.
  [[nodiscard]] std::string TurnFile() const { return path_ + "/turns"; }

 private:
  std::string path_;
  std::unique_ptr<format::TempFolder> temporary_;  // null: it stays
};

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_SCRATCH_FOLDER_H_
