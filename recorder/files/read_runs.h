// ReadRuns: what is read of one open file, put together into ranges.
//
// Reads that follow one another become one range, which is hashed as it grows. A range is finished:
// - at the next multiple of kMostDigest, or of kMostKept where the bytes are kept too
// - when the file is closed
// - when there is no room for another run: several threads may read different parts of a file in
// turns
//
// Owner: an OpenedInput, which serialises the calls. Memory straight from the kernel, kept for good
// and used again. What stands in an unfinished range is lost if the process is killed.
#ifndef DEJA_RECORDER_FILES_READ_RUNS_H_
#define DEJA_RECORDER_FILES_READ_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/ids.h"
#include "digest/digest.h"

namespace deja::recorder {

struct ReadRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  Hash128 hash;
  std::span<const std::byte> bytes;  // where they are kept
};

class ReadRuns {
 public:
  static constexpr uint64_t kMostDigest = 1 << 20;
  static constexpr uint64_t kMostKept = 64 << 10;

  // Takes finished ranges.
  struct Sink {
    void (*take)(const ReadRange& range, void* context);
    void* context;
  };

  // The program was given `bytes`, which stand at `offset`. `keep`: ranges come with their bytes.
  // Returns where what is now known without a gap, up to the end of `bytes`, begins.
  uint64_t Add(uint64_t offset, std::span<const std::byte> bytes, bool keep, const Sink& sink);
  // Finishes all ranges.
  void Finish(const Sink& sink);
  // Drops them.
  void Forget();

 private:
  static constexpr size_t kRuns = 4;
  struct Run {
    uint64_t begin = 0;
    uint64_t end = 0;    // begin: nothing
    uint64_t since = 0;  // without a gap, also in ranges that are finished
    uint64_t used = 0;
    std::byte* buffer = nullptr;
    digest::RunningHash hash;
  };

  Run& Choose(uint64_t offset, const Sink& sink);
  void Cut(Run& run, const Sink& sink);

  Run runs_[kRuns];
  uint64_t clock_ = 0;
  bool keep_ = false;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_READ_RUNS_H_
