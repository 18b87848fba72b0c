// Overlay: where a replayed program's writes go.
//
// The program sees the file system as it is plus what it wrote itself. Writes, creations, renames
// and removals happen to copies below SCRATCH/overlay/<absolute path>; a name that the program
// removed or moved away is remembered by a marker below SCRATCH/whiteout, which hides the real name
// and everything under it. Nothing outside SCRATCH is ever changed. All state is in those folders,
// so that children of the program see the same files.
//
// Owner: the engine. Threads: any; Map serialises writers, readers take no lock. Reading costs one
// or two file-system look-ups.
#ifndef DEJA_REPLAYER_FILES_OVERLAY_H_
#define DEJA_REPLAYER_FILES_OVERLAY_H_

#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "preload/calls/file_calls.h"

namespace deja::replayer {

class Overlay {
 public:
  // `scratch` is an absolute path of a folder that exists and belongs to this replay.
  void Open(std::string scratch);
  [[nodiscard]] bool is_open() const { return !scratch_.empty(); }
  [[nodiscard]] const std::string& scratch() const { return scratch_; }

  // Hides what the recorded run made, if it is still there: the program finds what it found then.
  void HideCreated(const std::string& path);
  // True where something is hidden only because the recorded run made it, or a folder on the way:
  // what the program has not removed itself. The run may have found there what others made.
  [[nodiscard]] bool IsHiddenAsCreated(const std::string& path) const;
  // The program finds a copy of the file `content` at `path` from now on, unless it has written or
  // removed what is there; a null `content` is a folder, an empty one nothing at all.
  void Seed(const std::string& path, const char* content);
  // The same in place of what the program has written there itself.
  void Replace(const std::string& path, const char* content);
  // Nothing is at `path` any more.
  void Remove(const std::string& path);
  // The same as Seed with a FIFO.
  void SeedFifo(const std::string& path);
  // True if `place` is a file, or a folder, of the program's own.
  [[nodiscard]] bool IsOwn(std::string_view place) const;
  // As preload::Engine::UnmapPath.
  size_t Unmap(char* path, size_t size) const;
  // As preload::Engine::MapPath.
  const char* Map(int dirfd, const char* path, preload::FileUse use, std::span<char> buffer);
  // Where the links that the program has made itself lead from `path`; empty: it is none of them.
  std::string FollowOwnLinks(int dirfd, const char* path) const;

 private:
  struct Place {
    std::string logical;  // absolute, without . and .., symbolic links of folders resolved
    std::string copy;     // below overlay/
    bool has_copy = false;
    bool has_real = false;  // and it is not hidden
  };

  // Absolute path that the program means; empty with errno set when it cannot be known. Sets
  // `renamed` if the path as it stands leads into one of our folders.
  std::string Logical(int dirfd, const char* path, bool& renamed) const;
  // `path` without what makes it a path of the scratch folder.
  std::string Outside(std::string path, bool& renamed) const;
  Place Find(const std::string& logical) const;
  [[nodiscard]] Place Target(const Place& place) const;
  // Where something may be put in place of what is really at `path`; empty: nowhere.
  std::string SeedPlace(const std::string& path, std::string& logical);
  [[nodiscard]] bool IsHidden(const std::string& logical) const;
  [[nodiscard]] std::string Copy(const std::string& logical) const { return overlay_ + logical; }
  [[nodiscard]] std::string Marker(const std::string& logical) const;

  const char* Read(const Place& place, const char* path, std::span<char> buffer);
  bool PrepareWrite(const Place& place, preload::FileUse use);
  bool PrepareRemove(const Place& place);
  bool PrepareMakeDir(const Place& place);
  // Makes the folder that holds `place`'s copy; false with ENOENT if the program sees no such
  // folder.
  bool MakeParents(const Place& place);
  bool CopyUp(const std::string& real, const std::string& copy);
  // Why a name is hidden; the size of its marker.
  enum class Why : unsigned char { kRemoved = 0, kCreated = 1 };
  bool Hide(const std::string& logical, Why why = Why::kRemoved);
  // A folder that lists what both the real one and the copy hold.
  std::string Merged(const Place& place);

  std::string scratch_;
  std::string overlay_;
  std::string whiteout_;
  std::string merged_;
  std::mutex mutex_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_OVERLAY_H_
