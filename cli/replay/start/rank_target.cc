#include "cli/replay/start/rank_target.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "cli/own_variables.h"
#include "cli/replay/start/created_by_children.h"
#include "format/layout/child_folder.h"
#include "format/scratch/created_names.h"
#include "format/scratch/process_list.h"
#include "format/scratch/scratch_names.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// The library in a child of the rank finds the child's recording by this list. `life`: as
// Trace::LifeBefore. If it is not empty, names are below its first process, else below the rank,
// whose `folder` this is. A process without a folder is another rank. The folder of that rank is in
// a list of its own (replayer/forks/companions.h).
Status ListChildren(format::Trace& trace, uint32_t rank, int attempt, const std::string& folder,
                    const std::vector<format::ChildFolder>& life, const std::string& scratch) {
  DEJA_ASSIGN_OR_RETURN(const auto children, trace.Children(rank, attempt));
  const auto absolute = [](const std::string& path) {
    std::error_code error;
    return fs::absolute(path, error).string();
  };
  std::vector<format::ListedProcess> own;
  const std::string before = life.empty() ? "" : life.back().name + "/";
  for (size_t i = 1; i < life.size(); ++i) own.push_back({life[i].name, absolute(life[i].path)});
  for (const format::ChildFolder& child : children)
    own.push_back({before + child.name, absolute(child.path)});
  std::vector<format::ListedProcess> others;
  const auto first =
      life.empty() ? format::ReadOrigin(folder) : Result<format::Origin>(life.front().origin);
  for (const format::RankFolder& other : trace.ranks()) {
    std::string name;
    const auto origin = format::ReadOrigin(other.path);
    if (other.rank == rank || !first || !origin || !format::IsBelow(*origin, *first, name))
      continue;
    own.push_back({name, ""});
    others.push_back({name, absolute(other.path)});
    DEJA_ASSIGN_OR_RETURN(const auto theirs,
                          trace.Children(other.rank, static_cast<int>(other.attempt)));
    for (const format::ChildFolder& child : theirs)
      others.push_back({name + "/" + child.name, absolute(child.path)});
  }
  std::vector<std::string> folders;
  if (!life.empty()) folders.push_back(folder);
  for (const format::ChildFolder& child : children) folders.push_back(child.path);
  DEJA_RETURN_IF_ERROR(
      format::WriteCreatedNames(scratch + format::kCreatedFile, NamesCreatedBy(folders)));
  DEJA_RETURN_IF_ERROR(format::WriteProcessList(scratch + format::kChildrenFile, own));
  return format::WriteProcessList(scratch + format::kCompanionsFile, others);
}

// `name`: as in the list.
void ChooseChild(const std::string& name, ReplayTarget& target) {
  if (!name.empty()) target.environment.push_back(Entry(env::kChosenChild, name));
}

Result<std::string> FolderOf(const format::Trace& trace, uint32_t rank, int attempt) {
  const format::RankFolder* found = nullptr;
  for (const format::RankFolder& folder : trace.ranks())
    if (folder.rank == rank && (attempt < 0 || folder.attempt == static_cast<uint32_t>(attempt)))
      found = &folder;
  if (found == nullptr)
    return Fail(ErrorCode::kNotFound,
                fmt::format("replaying: rank {}: the trace does not hold it", rank));
  std::error_code error;
  return fs::absolute(found->path, error).string();
}

}  // namespace

Result<ReplayTarget> PrepareRank(format::Trace& trace, uint32_t rank, int attempt,
                                 const std::string& scratch, const ReplayOptions& options) {
  DEJA_ASSIGN_OR_RETURN(const std::string folder, FolderOf(trace, rank, attempt));
  DEJA_ASSIGN_OR_RETURN(const auto life, trace.LifeBefore(rank, attempt));
  DEJA_RETURN_IF_ERROR(ListChildren(trace, rank, attempt, folder, life, scratch));
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
  if (reader->header().rank != rank)
    return Fail(
        ErrorCode::kCorrupt,
        fmt::format(
            "replaying: rank {} of {}: its header says rank {}; the folder was copied or renamed",
            rank, trace.path(), reader->header().rank));
  if (life.empty()) {
    DEJA_ASSIGN_OR_RETURN(ReplayTarget target, PrepareReplay(*reader, folder, scratch, options));
    ChooseChild(options.child, target);
    return target;
  }
  std::error_code error;
  const std::string first = fs::absolute(life.front().path, error).string();
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* before, trace.Process(life.front()));
  DEJA_ASSIGN_OR_RETURN(ReplayTarget target, PrepareReplay(*before, first, scratch, options));
  target.rank = rank;
  target.is_forked = true;
  target.environment.push_back(Entry(env::kForked, life.back().name));
  ChooseChild(options.child.empty() ? "" : life.back().name + "/" + options.child, target);
  return target;
}

}  // namespace deja::cli
