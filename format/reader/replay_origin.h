// ReplayOrigin: what the trace of a replay says about itself: which recording it is a replay of,
// and which part of it.
//
// On disk it is the text of the first note of the trace (docs/FORMAT.md, "Traces of replays"), so
// that every copy of the trace has it. Values; any thread; what comes from a trace is not to be
// trusted.
#ifndef DEJA_FORMAT_READER_REPLAY_ORIGIN_H_
#define DEJA_FORMAT_READER_REPLAY_ORIGIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deja::format {

class RankReader;

// A stretch of the recording's time, both ends included.
struct TimeRange {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  [[nodiscard]] bool Has(uint64_t time_ns) const {
    return first_ns <= time_ns && time_ns <= last_ns;
  }
};

struct ReplayOrigin {
  std::string trace;   // of the recording, as it was named
  std::string job_id;  // of its job, 32 hexadecimal digits
  uint32_t attempt = 0;
  // For a replay that started at a checkpoint: its step, and what it left out of the recording.
  std::optional<uint64_t> from_step;
  TimeRange skipped;
  // For a replay that ended where it was asked to: what comes after this was not wanted.
  std::optional<uint64_t> ended_ns;

  // The note's text; `ended_ns` is not in it.
  [[nodiscard]] std::string Write() const;
};

// The text of the note with which a replay says that it ended where it was asked to.
inline constexpr std::string_view kReplayEnded = "deja-replay-ended";

// Nothing: the text is another program's note.
std::optional<ReplayOrigin> ParseReplayOrigin(std::string_view text);

// Nothing: the rank was recorded, not replayed.
std::optional<ReplayOrigin> ReadReplayOrigin(const RankReader& reader);

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_REPLAY_ORIGIN_H_
