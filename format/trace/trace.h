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

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

class TraceRewriter;

class Trace {
 public:
  static Result<std::unique_ptr<Trace>> Open(const std::string& path);
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
  // Where a replay of `rank` begins if it is a forked child: first the recording of its nearest
  // ancestor that began with an image of its own, without a name, then, named below that, what was
  // forked on the way, the rank last. Empty: the rank began with an image of its own. An error if
  // one of them was not recorded.
  virtual Result<std::vector<ChildFolder>> LifeBefore(uint32_t rank, int attempt = -1) = 0;
  // Opens what these two have listed.
  virtual Result<const RankReader*> Process(const ChildFolder& process) = 0;
  // Opens one of the children; an error that lists some of those that are there if it is not.
  virtual Result<const RankReader*> Child(uint32_t rank, const std::string& name,
                                          int attempt = -1) = 0;
};

struct PackOptions {
  // Whose payloads are kept; empty: all ranks', or, if not all fit, first those of the ranks that
  // failed (the lowest one if none did).
  std::vector<uint32_t> ranks;
  // Payloads of these steps, from first to last, and of what came before the first step of all.
  std::optional<std::pair<uint64_t, uint64_t>> steps;
  Level level = Level::kFull;  // bytes of tensors from full on; their digests from digest on
  uint64_t max_bytes = 0;      // of the bundle; 0: as large as it gets
  int zstd_level = 0;          // of events; 0: as they are, or 3 where they are written anew
  // Checkpoints as differences to what their optimizers should have made. Not with max_bytes.
  bool predict = false;
  TraceRewriter* rewriter = nullptr;  // borrowed; changes what is written
  // Makes more files of the bundle, name and text, of the trace as it will be in it; they are for
  // people: `deja` reads none of them. One that would make the bundle too large is left out.
  std::function<std::vector<std::pair<std::string, std::string>>(Trace&)> describe;
  std::function<void(uint64_t, uint64_t)> progress;  // done, total

  // Whether a bundle of the files as they are would do, if it is small enough.
  [[nodiscard]] bool TakesAll() const {
    return ranks.empty() && !steps && level == Level::kFull && zstd_level == 0 && !predict &&
           rewriter == nullptr;
  }
};

// Payloads that the events of one folder refer to and that the bundle does not have.
struct BundleOmission {
  uint32_t rank = 0;
  std::string child;  // name of a process of the rank; empty: the rank itself
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  std::string what;
};

struct BundleResult {
  std::string path;
  uint64_t bytes = 0;
  uint64_t files = 0;
  std::vector<BundleOmission> left_out;
};

// Writes the trace (a directory or a bundle) as one zip file; entries are stored, not deflated:
// their contents are compressed already. Ranks whose tail is still outside the folder are completed
// in the bundle. `out` must not exist. kLimit: it cannot be as small as it should be.
Result<BundleResult> WriteBundle(const std::string& trace, const std::string& out,
                                 const PackOptions& options = {});

// Whether the header says that it is this rank's recording.
inline bool IsOf(const RankReader& reader, const RankFolder& folder) {
  return reader.header().rank == folder.rank && reader.header().attempt == folder.attempt;
}

struct VerifyProblem {
  uint32_t rank = 0;
  std::string child;  // name of a process of the rank; empty: the rank itself
  std::string file;
  uint64_t offset = 0;
  std::string what;
};

struct VerifyReport {
  uint64_t ranks = 0;
  uint64_t children = 0;
  uint64_t frames = 0;
  uint64_t events = 0;
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  uint64_t events_lost = 0;        // gaps in the streams
  uint64_t payloads_missing = 0;   // referred to by an event and not there
  uint64_t payloads_dropped = 0;   // the same, because the window has moved on
  uint64_t payloads_left_out = 0;  // the same, but on purpose (LeftOut)
  std::vector<VerifyProblem> problems;
};

// Reads every frame, decodes every payload and compares its hash, and checks the streams for gaps;
// on a thread for each processor, a folder each. `progress(done, total)` may be empty; units are
// bytes; one thread calls it at a time.
Result<VerifyReport> Verify(Trace& trace, const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_TRACE_H_
