#include "format/trace/trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/os/folder_names.h"
#include "format/layout/rank_folder.h"
#include "format/trace/bundle_reader.h"
#include "format/trace/temporary_folder.h"
#include "format/wire/frame_format.h"

namespace deja::format {
namespace {

class TraceImpl final : public Trace {
 public:
  TraceImpl(std::string path, std::string directory, std::unique_ptr<TempFolder> unpacked,
            std::vector<RankFolder> ranks)
      : path_(std::move(path)),
        directory_(std::move(directory)),
        unpacked_(std::move(unpacked)),
        ranks_(std::move(ranks)) {}

  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] const std::string& directory() const override { return directory_; }
  [[nodiscard]] const std::vector<RankFolder>& ranks() const override { return ranks_; }

  Result<const RankReader*> Rank(uint32_t rank, int attempt) override {
    const RankFolder* folder = Find(rank, attempt);
    if (folder == nullptr) {
      std::string what = "rank " + std::to_string(rank);
      if (attempt >= 0) what += ", attempt " + std::to_string(attempt);
      return Fail(ErrorCode::kNotFound,
                  "opening: " + path_ + ": " + what + " is not in it; it holds " + Names());
    }
    return Open(folder->path);
  }

  Result<std::vector<ChildFolder>> Children(uint32_t rank, int attempt) override {
    const RankFolder* folder = Find(rank, attempt);
    std::vector<ChildFolder> children;
    if (folder == nullptr) return children;
    ReadChildren();
    for (const auto& [owner, child] : children_)
      if (owner == folder->path) children.push_back(child);
    std::sort(children.begin(), children.end(), [](const ChildFolder& a, const ChildFolder& b) {
      return NameBefore(a.name, b.name);
    });
    return children;
  }

  Result<std::vector<ChildFolder>> LifeBefore(uint32_t rank, int attempt) override {
    std::vector<ChildFolder> life;
    const RankFolder* folder = Find(rank, attempt);
    const Result<Origin> own =
        folder == nullptr ? Result<Origin>(Origin{}) : ReadOrigin(folder->path);
    auto path = own ? ForkedFrom(own->path) : std::nullopt;
    if (!path) return life;
    life.push_back({"", *own, folder->path});
    for (; path; path = ForkedFrom(*path)) {
      const std::optional<ChildFolder> parent = FindProcess(own->root, *path);
      if (!parent)
        return Fail(ErrorCode::kNotFound,
                    "opening: " + path_ + ": rank " + std::to_string(rank) +
                        ": its life before the fork is missing, as the trace does not hold the "
                        "process that forked it (it took more than 64 MB of inputs, or an older "
                        "Deja recorded it); start the ranks by exec (torchrun, the start method "
                        "spawn)");
      life.insert(life.begin(), *parent);
    }
    for (ChildFolder& one : life) IsBelow(one.origin, life.front().origin, one.name);
    return life;
  }

  Result<const RankReader*> Process(const ChildFolder& process) override {
    return Open(process.path);
  }

  Result<const RankReader*> Child(uint32_t rank, const std::string& name, int attempt) override {
    DEJA_ASSIGN_OR_RETURN(const std::vector<ChildFolder> children, Children(rank, attempt));
    constexpr size_t kMost = 10;
    std::string names;
    for (const ChildFolder& child : children) {
      if (child.name == name) return Open(child.path);
      if (std::count(names.begin(), names.end(), ',') < static_cast<ptrdiff_t>(kMost))
        names += (names.empty() ? "" : ", ") + child.name;
    }
    return Fail(ErrorCode::kNotFound,
                "opening: " + path_ + ": rank " + std::to_string(rank) + " has no child " + name +
                    (names.empty() ? "; it has none that was recorded" : "; it has " + names));
  }

 private:
  [[nodiscard]] const RankFolder* Find(uint32_t rank, int attempt) const {
    const RankFolder* folder = nullptr;
    for (const RankFolder& candidate : ranks_) {
      if (candidate.rank != rank) continue;
      if (attempt < 0 || candidate.attempt == static_cast<uint32_t>(attempt)) folder = &candidate;
    }
    return folder;
  }

  // Each rank that it has forked may have kept what there was until then: the one that has most
  // events. (Their files may be the other way round: random bytes do not compress alike.)
  [[nodiscard]] std::optional<ChildFolder> FindProcess(const std::string& root,
                                                       const std::string& path) {
    std::vector<std::string> folders = ListChildFolders(directory_);
    for (const RankFolder& rank : ranks_) folders.push_back(rank.path);
    std::optional<ChildFolder> found;
    uint64_t most = 0;
    for (const std::string& folder : folders) {
      Result<Origin> origin = ReadOrigin(folder);
      if (!origin || origin->root != root || origin->path != path) continue;
      const Result<const RankReader*> reader = Open(folder);
      if (!reader || (found && (*reader)->totals().events <= most)) continue;
      most = (*reader)->totals().events;
      found = ChildFolder{"", std::move(*origin), folder};
    }
    return found;
  }

  Result<const RankReader*> Open(const std::string& folder) {
    const std::lock_guard<std::mutex> lock(readers_mutex_);
    auto& reader = readers_[folder];
    if (reader == nullptr) {
      ReadOptions options;
      options.share_descriptors = true;
      options.spill_beyond = kPayloadsInMemory;
      DEJA_ASSIGN_OR_RETURN(reader, RankReader::Open(folder, options));
      reader->SetPeers([this] { return All(); });
    }
    return reader.get();
  }

  // Those that can be opened.
  std::vector<const RankReader*> All() {
    std::vector<const RankReader*> readers;
    for (const RankFolder& folder : ranks_) {
      if (const auto reader = Rank(folder.rank, static_cast<int>(folder.attempt)))
        readers.push_back(*reader);
    }
    return readers;
  }

  // Once, at the first question: a trace may have very many.
  void ReadChildren() {
    if (std::exchange(children_read_, true)) return;
    std::vector<Origin> origins;
    for (const RankFolder& rank : ranks_)
      origins.push_back(ReadOrigin(rank.path).value_or(Origin{}));
    for (const std::string& folder : ListChildFolders(directory_)) {
      Result<Origin> origin = ReadOrigin(folder);
      std::string name;
      const int owner = origin ? OwnerOf(*origin, origins, name) : -1;
      if (owner < 0) continue;
      children_.emplace_back(ranks_[static_cast<size_t>(owner)].path,
                             ChildFolder{name, std::move(*origin), folder});
    }
  }

  // "rank 0, 1, 2 and 5"; long lists are cut.
  [[nodiscard]] std::string Names() const {
    constexpr size_t kMost = 20;
    std::string names = "rank ";
    size_t shown = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (i > 0 && ranks_[i].rank == ranks_[i - 1].rank) continue;
      if (shown == kMost) return names + ", …";
      if (shown++ > 0) names += ", ";
      names += std::to_string(ranks_[i].rank);
    }
    return names;
  }

  std::string path_;
  std::string directory_;
  std::unique_ptr<TempFolder> unpacked_;  // of a bundle
  std::vector<RankFolder> ranks_;
  std::mutex readers_mutex_;
  std::map<std::string, std::unique_ptr<RankReader>> readers_;
  bool children_read_ = false;
  std::vector<std::pair<std::string, ChildFolder>> children_;  // folder of the rank, child
};

}  // namespace

Result<std::vector<RankFolder>> ListRankFolders(const std::string& directory) {
  DIR* entries = opendir(directory.c_str());
  if (entries == nullptr) {
    const int error = errno;
    if (error == ENOENT)
      return Fail(ErrorCode::kNotFound, "opening: " + directory + ": it does not exist");
    return FailErrno("listing: " + directory, error);
  }
  std::vector<RankFolder> folders;
  while (const dirent* entry = readdir(entries)) {
    const std::optional<RankFolderName> name = ParseRankFolderName(entry->d_name);
    if (!name) continue;
    struct stat info {};
    if (fstatat(dirfd(entries), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(info.st_mode)) {
      const std::string link = entry->d_name;
      closedir(entries);
      return Fail(ErrorCode::kForeign,
                  "opening: " + directory + ": " + link +
                      ": it is a symbolic link, and a trace has its ranks in itself; put the "
                      "folder there instead");
    }
    folders.push_back({name->rank, name->attempt, directory + "/" + entry->d_name});
  }
  closedir(entries);
  std::sort(folders.begin(), folders.end(), [](const RankFolder& a, const RankFolder& b) {
    return std::pair(a.rank, a.attempt) < std::pair(b.rank, b.attempt);
  });
  return folders;
}

Result<std::unique_ptr<Trace>> Trace::Open(
    const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    const int error = errno;
    if (error == ENOENT) {
      return Fail(ErrorCode::kNotFound, "opening: " + path +
                                            ": it does not exist; name a trace (NAME.deja) or a "
                                            "bundle (NAME.deja.zip)");
    }
    return FailErrno("opening: " + path, error);
  }
  std::unique_ptr<TempFolder> unpacked;
  std::string directory = path;
  if (S_ISREG(info.st_mode)) {
    DEJA_ASSIGN_OR_RETURN(unpacked, UnpackBundle(path, progress));
    directory = unpacked->path();
    CallFolder(directory, path);
  } else if (!S_ISDIR(info.st_mode)) {
    return Fail(ErrorCode::kForeign,
                "opening: " + path + ": neither a trace's directory nor a bundle");
  }
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  DEJA_ASSIGN_OR_RETURN(std::vector<RankFolder> ranks, ListRankFolders(directory));
  if (ranks.empty()) {
    return Fail(ErrorCode::kForeign,
                "opening: " + path +
                    ": it holds no rank: it is not a Deja trace, or no process of the job created "
                    "a communicator");
  }
  return std::unique_ptr<Trace>(std::make_unique<TraceImpl>(path, std::move(directory),
                                                            std::move(unpacked), std::move(ranks)));
}

}  // namespace deja::format
