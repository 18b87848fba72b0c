// Bundles: a trace as one zip file. Packing, and unpacking into a private temporary folder.
//
// A bundle is hostile input: only entries whose names are those of a rank's files are unpacked, to
// names that are made anew, into a folder that did not exist before; what comes out is bounded by
// the size of the bundle (docs/FORMAT.md, "Bundles").
#ifndef DEJA_FORMAT_BUNDLE_H_
#define DEJA_FORMAT_BUNDLE_H_

#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::format {

// A folder of our own in $TMPDIR or /tmp; removed, with what is in it, by the destructor.
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

// The folders of ranks in `directory`, sorted by rank, then attempt; none is not an error.
Result<std::vector<RankFolder>> ListRankFolders(const std::string& directory);

// What a zip archive of stored entries needs besides the bytes of its files: two headers an entry,
// each with its name, and the end; more (at most so much) where numbers need 64 bits.
constexpr uint64_t ZipOverheadBytes(uint64_t entries, uint64_t name_bytes, uint64_t file_bytes) {
  const bool large = file_bytes + entries * 1024 >= ~uint32_t{0} || entries >= 0xffff;
  return 22 + entries * (30 + 46) + 2 * name_bytes + (large ? 76 + entries * 64 : 0);
}

Result<std::unique_ptr<TempFolder>> UnpackBundle(const std::string& path);

// Writes into `out`, a folder that exists and is empty, the files of the recording that `folder`
// holds as if it had been finished: what is only in the tail is put in, damage is left out, index
// and footer are made. `folder` is not changed.
Status WriteFinalizedCopy(const std::string& folder, const std::string& out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_BUNDLE_H_
