// Packing a trace as one zip file, a bundle, for a bug report.
//
// Owner: the caller. One thread calls, all processors work.
#ifndef DEJA_FORMAT_PACK_BUNDLE_WRITER_H_
#define DEJA_FORMAT_PACK_BUNDLE_WRITER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::format {

class TraceRewriter;

struct PackOptions {
  // Whose payloads are kept; empty: all ranks', or, if not all fit, first those of the ranks that
  // failed (the lowest one if none did).
  std::vector<uint32_t> ranks;
  // Payloads of these steps, from first to last, and of what came before the first step of all.
  std::optional<std::pair<uint64_t, uint64_t>> steps;
  Level level = Level::kFull;  // bytes of tensors from full on; their digests from digest on
  uint64_t max_bytes = 0;      // of the bundle; 0: as large as it gets
  int zstd_level = 0;          // of events; 0: as they are, or 3 if they are written again
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

// What a zip archive of stored entries needs besides the bytes of its files: two headers an entry,
// each with its name, and the end; more (at most so much) where numbers need 64 bits.
constexpr uint64_t ZipOverheadBytes(uint64_t entries, uint64_t name_bytes, uint64_t file_bytes) {
  const bool large = file_bytes + entries * 1024 >= ~uint32_t{0} || entries >= 0xffff;
  return 22 + entries * (30 + 46) + 2 * name_bytes + (large ? 76 + entries * 64 : 0);
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_BUNDLE_WRITER_H_
