// FrameReader: a file's frames, one after the other or at a known offset. Input is hostile.
//
// Reading has four outcomes: a record; the clean end of a finished file; a torn tail (the file
// stops inside a frame, or between frames without footer: its writer died); corruption. After
// corruption the reader goes on at the next frame that is intact, so damage costs the frames that
// it touches and no others. Memory: the buffers of one frame, bounded by frame_format.h.
//
// Borrows the file. One thread at a time.
#ifndef DEJA_FORMAT_WIRE_FRAME_READER_H_
#define DEJA_FORMAT_WIRE_FRAME_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "format/wire/frame_format.h"
#include "format/wire/zstd_codec.h"

namespace deja::format {

enum class FrameOutcome {
  kRecord,    // a frame; its type may be one that this version does not know
  kCleanEnd,  // the file is finished: it ends with a footer
  kTornTail,  // the file stops here; `size` bytes after the last whole frame could not be used
  kCorrupt,   // `size` bytes were skipped; call Next() again
};

struct FrameResult {
  FrameOutcome outcome = FrameOutcome::kRecord;
  FrameType type{};
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;    // bytes in the file, header included; for the other outcomes: bytes lost
  std::string reason;   // what was found, for kTornTail and kCorrupt
};

class FrameReader {
 public:
  explicit FrameReader(const ReadFile& file);

  // Checks the magic. kForeign: not a file of a trace; kUnsupportedVersion: of a newer Deja;
  // kTruncated: the file ends inside the magic. Next() starts after it.
  Status CheckMagic();

  // The next frame; `payload` receives its decoded payload. End frames are checked and not handed
  // out. After kCleanEnd and kTornTail the same result comes again.
  FrameResult Next(std::vector<std::byte>& payload);

  // The frame at `offset`, without looking further: never kCleanEnd.
  FrameResult ReadAt(uint64_t offset, std::vector<std::byte>& payload);

  // Where Next() goes on.
  void Seek(uint64_t offset) { next_ = offset; }
  [[nodiscard]] uint64_t position() const { return next_; }

 private:
  FrameResult ReadFrame(uint64_t offset, std::vector<std::byte>& payload, bool& header_is_good);
  FrameResult AtEnd();
  uint64_t FindFrame(uint64_t from);
  bool OnlyZerosFrom(uint64_t from);

  const ReadFile& file_;
  uint64_t next_ = kMagicBytes;
  uint64_t last_footer_ = 0;  // offset of the footer frame seen last
  uint64_t finished_at_ = 0;  // where the last good end frame ends
  std::vector<std::byte> stored_;
  ZstdDecompressor zstd_;
};

// Offset of the footer of a finished file, found from its end without reading the rest; kNotFound
// if the file does not end with an end frame.
Result<uint64_t> FindFooter(const ReadFile& file);

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_FRAME_READER_H_
