#include "cli/replay/start/replay_fence.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/fence/trust_store.h"

namespace deja::cli {

namespace fs = std::filesystem;

Status MakeFence(const ReplayFence& wanted, const ScratchFolder& scratch, FenceKeeper& keeper,
                 ReplayOptions& options) {
  std::error_code error;
  FenceRules& fence = options.fence;
  if (!wanted.out.empty()) fence.writable.push_back(fs::canonical(wanted.out, error).string());
  if (!options.fold.empty()) fence.writable.push_back(options.fold);
  for (const std::string& path : wanted.allow_file)
    fence.writable.push_back(fs::weakly_canonical(path, error).string());
  std::vector<std::string> own = fence.writable;
  own.push_back(scratch.path());
  fence.writable.push_back(scratch.TurnFile());
  options.is_foreign = TrustStore().Of(wanted.trace) != Trust::kOwn;
  fence.readable.push_back(fs::canonical(wanted.directory, error).string());
  for (const std::string& path : wanted.allow_read)
    fence.readable.push_back(fs::absolute(path, error).string());
  if (wanted.unanswered) return {};
  DEJA_RETURN_IF_ERROR(keeper.Start(std::move(own)));
  fence.keeper = keeper.socket();
  return {};
}

}  // namespace deja::cli
