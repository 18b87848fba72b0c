// Trace: a whole recording, a directory NAME.deja or a bundle NAME.deja.zip.
//
// A directory holds one folder a rank, `rank-NNNNN` or `rank-NNNNN.A` for attempt A > 0. A bundle
// is unpacked into a private temporary folder on opening (names are checked against the names
// above; nothing else is unpacked), which is removed with the Trace. Opening never changes the
// recording.
//
// Owner: the caller; readers handed out live as long as the Trace. Threads: ranks may be opened by
// several, children by one at a time.
#ifndef DEJA_FORMAT_TRACE_TRACE_H_
#define DEJA_FORMAT_TRACE_TRACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/layout/child_folder.h"
#include "format/reader/rank_reader.h"

namespace deja::format {

struct RankFolder {
  uint32_t rank = 0;
  uint32_t attempt = 0;
  std::string path;
};

class Trace {
 public:
  // Opens a trace's directory or a bundle. An error if there is none, or if it is no trace.
  // `progress(done, total)` hears of the bytes that are unpacked; it may be empty.
  static Result<std::unique_ptr<Trace>> Open(
      const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress = {});
  virtual ~Trace() = default;

  [[nodiscard]] virtual const std::string& path() const = 0;       // as given
  [[nodiscard]] virtual const std::string& directory() const = 0;  // where the folders are
  // Sorted by rank, then attempt.
  [[nodiscard]] virtual const std::vector<RankFolder>& ranks() const = 0;
  // Opens the last attempt of `rank` (or `attempt`, if it is not negative); an error that lists the
  // ranks that are there if it is not.
  virtual Result<const RankReader*> Rank(uint32_t rank, int attempt = -1) = 0;

  // The recorded processes that `rank` has made, and those that they have made, by name.
  virtual Result<std::vector<ChildFolder>> Children(uint32_t rank, int attempt = -1) = 0;
  // Where a replay of `rank` begins if it is a forked child. First comes, without a name, the
  // recording of its nearest ancestor that began with an image of its own. Then, named below that,
  // come the processes forked on the way, the rank last. Empty: the rank began with an image of its
  // own. An error if one of them was not recorded.
  virtual Result<std::vector<ChildFolder>> LifeBefore(uint32_t rank, int attempt = -1) = 0;
  // Opens what these two have listed.
  virtual Result<const RankReader*> Process(const ChildFolder& process) = 0;
  // Opens one of the children; an error that lists some of those that are there if it is not.
  virtual Result<const RankReader*> Child(uint32_t rank, const std::string& name,
                                          int attempt = -1) = 0;
};

// The folders of ranks in `directory`, sorted by rank, then attempt; none is not an error.
Result<std::vector<RankFolder>> ListRankFolders(const std::string& directory);

// Whether the header says that it is this rank's recording.
inline bool IsOf(const RankReader& reader, const RankFolder& folder) {
  return reader.header().rank == folder.rank && reader.header().attempt == folder.attempt;
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_TRACE_H_
