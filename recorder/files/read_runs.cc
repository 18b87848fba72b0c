#include "recorder/files/read_runs.h"

#include <algorithm>
#include <cstring>

#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

// The run that ends at `offset`, or the one that has not grown for longest.
ReadRuns::Run& ReadRuns::Choose(uint64_t offset, const Sink& sink) {
  Run* chosen = &runs_[0];
  for (Run& run : runs_) {
    if (run.used != 0 && run.end == offset) {
      chosen = &run;
      break;
    }
    if (run.used < chosen->used) chosen = &run;
  }
  if (chosen->used == 0 || chosen->end != offset) {
    Cut(*chosen, sink);
    chosen->begin = chosen->end = chosen->since = offset;
  }
  chosen->used = ++clock_;
  return *chosen;
}

void ReadRuns::Cut(Run& run, const Sink& sink) {
  if (run.begin == run.end) return;
  ReadRange range{run.begin, run.end - run.begin, {}, {}};
  if (keep_) {
    range.bytes = {run.buffer, range.size};
    range.hash = digest::HashBytes(range.bytes);
  } else {
    range.hash = run.hash.Value();
  }
  run.begin = run.end;
  sink.take(range, sink.context);
}

uint64_t ReadRuns::Add(uint64_t offset, std::span<const std::byte> bytes, bool keep,
                       const Sink& sink) {
  keep_ = keep;
  const uint64_t most = keep ? kMostKept : kMostDigest;
  Run& run = Choose(offset, sink);
  while (!bytes.empty()) {
    // Without a copy, as far as whole ranges are there.
    if (keep && run.begin == run.end && bytes.size() >= kMostKept) {
      const auto piece = bytes.first(std::min<size_t>(bytes.size(), kMostDigest));
      sink.take({run.end, piece.size(), digest::HashBytes(piece), piece}, sink.context);
      run.begin = run.end += piece.size();
      bytes = bytes.subspan(piece.size());
      continue;
    }
    if (keep && run.buffer == nullptr) {
      run.buffer = static_cast<std::byte*>(MapZeroed(kMostKept));
      if (run.buffer == nullptr) {
        run.used = 0;
        return offset + bytes.size();
      }
    }
    const uint64_t room = std::min(most - run.end % most, run.begin + most - run.end);
    const auto piece = bytes.first(std::min<size_t>(bytes.size(), room));
    if (keep) {
      std::memcpy(run.buffer + (run.end - run.begin), piece.data(), piece.size());
    } else {
      if (run.begin == run.end) run.hash.Begin();
      run.hash.Add(piece);
    }
    run.end += piece.size();
    bytes = bytes.subspan(piece.size());
    if (run.end % most == 0) Cut(run, sink);
  }
  return run.since;
}

void ReadRuns::Finish(const Sink& sink) {
  for (Run& run : runs_) Cut(run, sink);
  Forget();
}

void ReadRuns::Forget() {
  for (Run& run : runs_) {
    run.begin = run.end = run.since = 0;
    run.used = 0;
  }
  clock_ = 0;
}

}  // namespace deja::recorder
