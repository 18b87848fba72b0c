// ServedFolders: listings of folders as they were recorded, in the recorded order.
//
// A folder that the recording does not have is listed by the C library. Any thread, inside the
// guard; a stream is used by one thread at a time.
#ifndef DEJA_REPLAYER_FILES_SERVED_FOLDERS_H_
#define DEJA_REPLAYER_FILES_SERVED_FOLDERS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "preload/calls/folders.h"

namespace deja::replayer {

class ServedFolders final : public preload::FolderLayer {
 public:
  struct Folder {
    std::string name;
    std::string entries;  // for each: a letter for the type, the name, a zero
  };
  // `find(stream, path, folder, context)` gives what was recorded; false if nothing was.
  // `inode(path, context)` is the recorded number of the file, or 0.
  using Find = bool (*)(DIR* stream, const char* path, Folder& folder, void* context);
  using Inode = uint64_t (*)(const std::string& path, void* context);
  void SetFind(Find find, Inode inode, void* context) {
    find_ = find;
    inode_ = inode;
    context_ = context;
  }

  void OnOpened(DIR* stream, const char* path) override;
  bool Serves(DIR* stream) override;
  dirent* Next(DIR* stream) override;
  [[nodiscard]] long Position(DIR* stream) override;
  void SetPosition(DIR* stream, long position) override;
  void OnClosed(DIR* stream) override;

 private:
  struct Listing {
    std::vector<dirent> entries;
    size_t next = 0;
  };
  Listing* ListingOf(DIR* stream);

  Find find_ = nullptr;
  Inode inode_ = nullptr;
  void* context_ = nullptr;
  std::mutex mutex_;
  std::map<DIR*, std::unique_ptr<Listing>> listings_;
};

// The entries of a folder as they stand in a recording, as readdir gives them. Names that no folder
// can have are left out.
std::vector<dirent> EntriesOf(std::string_view recorded);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_SERVED_FOLDERS_H_
