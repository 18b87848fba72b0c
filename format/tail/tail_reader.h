// TailReader: what the tail of a process (tail_format.h) still holds.
//
// Never maps the file and never writes it. Everything is read with pread and every length is
// checked, so a hostile, truncated or changing file costs an error and not a crash. The tail of a
// live process may be read, too; open it before the folder's files are read, so that what is
// drained in between is seen twice and not never.
//
// A process can die after it wrote a batch to its folder and before it took the batch out of the
// tail. Then the tail repeats events that the folder has. Each thread's events are drained in
// order. So a reader skips an event of a ring if the folder holds one of its thread with the same
// seq or a greater one. Likewise chunks of payloads may be in both; they are equal.
//
// Owner: the caller. Threads: const functions, any.
#ifndef DEJA_FORMAT_TAIL_TAIL_READER_H_
#define DEJA_FORMAT_TAIL_TAIL_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/os/file.h"
#include "common/result.h"
#include "format/tail/tail_format.h"
#include "format/wire/messages.h"

namespace deja::format {

// A part of a payload. Pieces of one payload are disjoint and may be cut anywhere.
struct TailPayload {
  Hash128 hash;
  uint64_t total_size = 0;
  uint64_t offset = 0;  // of this part in the payload
  uint64_t size = 0;
  uint32_t element_size = 1;
  uint64_t step = 0;         // how many steps had begun
  uint32_t segment = 0;      // it was to be kept in this one or in a later one
  uint64_t file_offset = 0;  // in the tail
};

struct TailIdentity {
  std::string path;
  std::string id;  // 16 bytes
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  TailState state = TailState::kOpen;
};

class TailReader {
 public:
  // `id`: the 16 bytes that the folder's header names, or empty for any. kForeign if the file is no
  // tail or another one; kUnsupportedVersion; kTruncated; kNotFound.
  static Result<std::unique_ptr<TailReader>> Open(const std::string& path, std::string_view id);
  // The same of a file that is open, or could not be opened.
  static Result<std::unique_ptr<TailReader>> Open(Result<std::unique_ptr<ReadFile>> file,
                                                  std::string_view id);
  virtual ~TailReader() = default;

  // The process that made the tail.
  [[nodiscard]] virtual const TailIdentity& identity() const = 0;
  // True if the process that made the tail still runs on this machine.
  [[nodiscard]] virtual bool WriterAlive() const = 0;

  // Encoded Events, each thread's in its order; views live as long as the reader.
  [[nodiscard]] virtual const std::vector<std::span<const std::byte>>& events() const = 0;
  // Those of them that came from emergency slots. They are the last ones of events(), and may be
  // older than what the folder has of their thread. (The rule above does not hold for them; they
  // are in the folder only if it was finished or an earlier recovery put them there.)
  [[nodiscard]] virtual size_t emergency_events() const = 0;
  [[nodiscard]] virtual const std::vector<TailPayload>& payloads() const = 0;
  // Reads the bytes of one part; `out` has its size.
  virtual Status ReadPayload(const TailPayload& part, std::span<std::byte> out) const = 0;

  // How the buffer fared.
  [[nodiscard]] virtual const Pressure& pressure() const = 0;
  // What had to be given up because the tail contradicts itself; empty if nothing.
  [[nodiscard]] virtual const std::string& damage() const = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_TAIL_READER_H_
