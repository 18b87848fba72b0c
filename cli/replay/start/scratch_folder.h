// The folder in which replayed programs write.
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_START_SCRATCH_FOLDER_H_
#define DEJA_CLI_REPLAY_START_SCRATCH_FOLDER_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace deja::cli {

// Removed with the object unless the user wants it.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Makes it: `chosen`, which must be new or empty and stays, or if that is empty one among the
  // temporary files, which stays and is told about if `keep`.
  Status Open(const std::string& chosen, bool keep);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Makes the folder of a rank.
  [[nodiscard]] Result<std::string> ForRank(uint32_t rank) const;
  // The file by which ranks share the memory of devices.
  [[nodiscard]] std::string TurnFile() const { return path_ + "/turns"; }

 private:
  std::string path_;
  bool remove_ = false;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_SCRATCH_FOLDER_H_
