// RankReader: the recording of one rank, on the reading side.
//
// Opens a rank's folder in any state: finished; torn (its process died, its tail is still there or
// is gone); being written. It never changes what it reads. Uses the index and footer where they are
// and scans frames where they are not; memory stays bounded by one decoded batch per iterator plus
// the index.
//
// Owner: the caller. Threads: const functions may be called by several threads; an EventCursor by
// one.
#ifndef DEJA_FORMAT_READER_RANK_READER_H_
#define DEJA_FORMAT_READER_RANK_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/layout/left_out.h"
#include "format/reader/batch_list.h"
#include "format/wire/messages.h"

namespace deja::format {

// How a file of the trace ends; the four outcomes of docs/FORMAT.md are a record, and these
// three.
enum class EndState {
  kCleanEnd,  // the footer was there
  kTornTail,  // the file stops in or after a frame without a footer: the writer died; see
              // `lost_bytes`
  kCorrupt,  // a frame's checksum or content is wrong; what follows it was skipped to the next good
             // frame
};

struct EndReport {
  EndState state = EndState::kCleanEnd;
  uint64_t lost_bytes = 0;   // bytes of the file that could not be used
  uint64_t tail_events = 0;  // events that came from the tail mapping and not from the file
  std::string detail;        // for humans: file, offset, what was found
};

class EventCursor;
class PayloadTable;

// How many payloads' places a command keeps in memory of each folder without an index.
inline constexpr size_t kPayloadsInMemory = size_t{1} << 16;

struct ReadOptions {
  bool use_tail = true;  // also read the tail mapping that the header names
  // For readers of very many ranks (common/os/shared_descriptor_file.h).
  bool share_descriptors = false;
  // Where there is no index: what is known of more payloads than this goes into a temporary file.
  // It is in `spill_folder`, or where such files belong if that is empty. A user's process names
  // a folder of Deja's own.
  size_t spill_beyond = ~size_t{0};
  std::string spill_folder = {};
};

class RankReader {
 public:
  // Reads the recording in `folder`. An error if there is none, or if it cannot be read.
  static Result<std::unique_ptr<RankReader>> Open(const std::string& folder,
                                                  const ReadOptions& options = {});
  virtual ~RankReader() = default;

  [[nodiscard]] virtual const TraceHeader& header() const = 0;  // views live as long as the reader
  // How the recording ended.
  [[nodiscard]] virtual const EndReport& end() const = 0;
  // Totals: from the footer, or counted while the folder was scanned.
  [[nodiscard]] virtual const Footer& totals() const = 0;
  // What whoever made this copy left out of it on purpose.
  [[nodiscard]] virtual const LeftOut& left_out() const = 0;
  // Sorted by file offset; the tail's events, if any, are in one last entry with size 0.
  [[nodiscard]] virtual const BatchList& batches() const = 0;
  [[nodiscard]] virtual uint64_t file_bytes() const = 0;  // of all files of the rank

  // Events in the order of the file: each thread's in its order, threads interleaved batch by
  // batch.
  [[nodiscard]] virtual std::unique_ptr<EventCursor> Events() const = 0;
  // Starts at the batch that holds operation `comm_seq` of communicator `comm` (number + 1) resp.
  // the step.
  [[nodiscard]] virtual std::unique_ptr<EventCursor> EventsFromOp(uint32_t comm,
                                                                  uint64_t comm_seq) const = 0;
  [[nodiscard]] virtual std::unique_ptr<EventCursor> EventsFromStep(uint64_t step) const = 0;
  // Starts at batch `batch` of batches().
  [[nodiscard]] virtual std::unique_ptr<EventCursor> EventsFromBatch(size_t batch) const = 0;
  // Ends with it.
  [[nodiscard]] virtual std::unique_ptr<EventCursor> EventsOfBatch(size_t batch) const = 0;

  // Size of a kept payload, or nothing.
  [[nodiscard]] virtual std::optional<uint64_t> PayloadSize(const Hash128& hash) const = 0;
  // Reads and decodes a payload into `out`, whose size must be PayloadSize(); checks its hash.
  virtual Status ReadPayload(const Hash128& hash, std::span<std::byte> out) const = 0;
  // Hands the bytes of a payload to `sink`, in order, at most kPayloadChunkBytes at a time; the
  // hash is checked at the end, when the sink has seen everything.
  virtual Status StreamPayload(
      const Hash128& hash, const std::function<void(std::span<const std::byte>)>& sink) const = 0;
  // Width of its elements in bytes, as its writer saw them; 1 if it is not known.
  [[nodiscard]] virtual uint32_t PayloadElementSize(const Hash128& hash) const = 0;
  // Those that are wholly in this folder.
  [[nodiscard]] virtual std::vector<PayloadInfo> payloads() const = 0;

  // The four functions before payloads() look into the folders of ranks that share payloads with
  // this one, too (TraceHeader.shares_with). When the first payload is not here, these folders are
  // looked for beside this one, or asked of `peers`. `peers` may name any ranks, this one among
  // them. To be set before the first payload is asked for.
  using Peers = std::function<std::vector<const RankReader*>()>;
  virtual void SetPeers(Peers peers) = 0;
  // True if the payloads of this segment are gone because a window has moved on: they are not lost.
  // The window is this rank's, or that of a rank that shares payloads with it.
  [[nodiscard]] virtual bool Dropped(uint32_t segment) const = 0;
  // What is in this folder (and its tail) alone.
  [[nodiscard]] virtual const PayloadTable& own_payloads() const = 0;
};

// The bit of a kind in EventCursor::NextOf and BatchInfo::kinds.
constexpr uint64_t KindBit(EventKind kind) {
  return uint64_t{1} << static_cast<uint32_t>(kind);
}

class EventCursor {
 public:
  virtual ~EventCursor() = default;
  // The next event, or null at the end. Its views are valid until the next call on this cursor, or
  // as long as the holder of batch() keeps it.
  virtual const Event* Next() = 0;
  // The next one whose kind is in `kinds` (bit n: EventKind n). With 0 it reads other frames, too.
  virtual const Event* NextOf(uint64_t kinds) = 0;
  // The serialized Event that Next() returned last, with what this version does not know of it.
  [[nodiscard]] virtual std::span<const std::byte> encoded() const = 0;
  // Keeps the buffer behind the events of the current batch alive.
  [[nodiscard]] virtual std::shared_ptr<const void> batch() const = 0;
  // Batch number and position in it of the event that Next() returned last.
  [[nodiscard]] virtual size_t batch_number() const = 0;
  // What had to be skipped so far because it is damaged; empty if nothing. (A finished file is not
  // read to its end when it is opened, so end() cannot know.)
  [[nodiscard]] virtual const std::string& damage() const = 0;
  // Events of batches that could not be read are not counted in anything; this counts the batches.
  [[nodiscard]] virtual uint64_t damaged_batches() const = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_RANK_READER_H_
