// StagedOutput: what a command makes is made in a folder beside its place and moved there when it
// is whole. Whatever ends the command before leaves nothing under the names that were asked for; a
// signal that can be handled leaves nothing at all, and after SIGKILL the next command that makes
// something there removes the folder (format/trace/temporary_folder.h).
//
// One thread.
#ifndef DEJA_CLI_PACK_STAGED_OUTPUT_H_
#define DEJA_CLI_PACK_STAGED_OUTPUT_H_

#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/trace/temporary_folder.h"

namespace deja::cli {

class StagedOutput {
 public:
  // kInvalidArgument: there is something at `path` already.
  static Result<StagedOutput> For(const std::string& path);

  // Where to make what will be at `path`.
  [[nodiscard]] std::string path() const { return folder_->path() + "/" + name_; }
  // Moves what was made, `path()` and files beside it, and says where each is now. What has an
  // earlier place in `made` comes later: a first part is there when all are.
  Result<std::vector<std::string>> Publish(const std::vector<std::string>& made) const;

 private:
  StagedOutput(std::unique_ptr<format::TempFolder> folder, std::string beside, std::string name)
      : folder_(std::move(folder)), beside_(std::move(beside)), name_(std::move(name)) {}

  std::unique_ptr<format::TempFolder> folder_;
  std::string beside_;  // the folder of `path`, ends with a slash; empty: the working directory
  std::string name_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_PACK_STAGED_OUTPUT_H_
