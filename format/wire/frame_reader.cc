#include "format/wire/frame_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "format/wire/format_version.h"

namespace deja::format {
namespace {

constexpr size_t kScanBytes = 64 << 10;

FrameResult Lost(FrameOutcome outcome, uint64_t offset, uint64_t size, std::string reason) {
  FrameResult result;
  result.outcome = outcome;
  result.offset = offset;
  result.size = size;
  result.reason = std::move(reason);
  return result;
}

std::string Describe(const FrameHeader& header) {
  return "frame of type " + std::to_string(static_cast<int>(header.type)) + ", " +
         std::to_string(header.stored_size) + " bytes";
}

uint64_t FooterOffsetOf(std::span<const std::byte> end_payload) {
  uint64_t offset = 0;
  if (end_payload.size() == kEndPayloadBytes) {
    std::memcpy(&offset, end_payload.data(), sizeof offset);
  }
  return offset;
}

}  // namespace

FrameReader::FrameReader(const ReadFile& file) : file_(file) {}

Status FrameReader::CheckMagic() {
  std::array<std::byte, kMagicBytes> magic{};
  DEJA_ASSIGN_OR_RETURN(const size_t size, file_.ReadAt(0, magic));
  const auto is = [&](size_t i) { return static_cast<uint8_t>(magic[i]) == kMagic[i]; };
  if (size >= kMagicBefore1.size() &&
      std::memcmp(magic.data(), kMagicBefore1.data(), kMagicBefore1.size()) == 0)
    return Fail(ErrorCode::kUnsupportedVersion,
                "opening: " + file_.name() +
                    ": a trace of a format before 1.0; record again, or use the Deja that "
                    "recorded it");
  for (size_t i = 0; i < size; ++i) {
    if (i != kMagicMajorAt && !is(i)) {
      return Fail(ErrorCode::kForeign, "opening: " + file_.name() + ": not a file of a Deja trace");
    }
  }
  if (size < kMagicBytes) {
    return Fail(ErrorCode::kTruncated, "opening: " + file_.name() + ": only " +
                                           std::to_string(size) +
                                           " bytes long; its writer died at once");
  }
  if (!is(kMagicMajorAt)) {
    return Fail(ErrorCode::kUnsupportedVersion,
                "opening: " + file_.name() + ": format version " +
                    std::to_string(static_cast<int>(magic[kMagicMajorAt])) +
                    ", this Deja reads version " + std::to_string(kFormatMajor) +
                    "; use the Deja that recorded it or a newer one");
  }
  return {};
}

FrameResult FrameReader::ReadFrame(uint64_t offset, std::vector<std::byte>& payload,
                                   bool& header_is_good) {
  header_is_good = false;
  payload.clear();
  const uint64_t left = file_.size() > offset ? file_.size() - offset : 0;
  if (left < kFrameHeaderBytes) {
    return Lost(FrameOutcome::kTornTail, offset, left, "the file stops inside a frame's header");
  }
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  const Result<size_t> got = file_.ReadAt(offset, bytes);
  if (!got) return Lost(FrameOutcome::kCorrupt, offset, left, got.error().message);
  if (*got < bytes.size()) {
    return Lost(FrameOutcome::kTornTail, offset, left, "the file became shorter while it was read");
  }
  FrameHeader header;
  switch (DecodeFrameHeader(bytes, header)) {
    case HeaderCheck::kNoSync:
      return Lost(FrameOutcome::kCorrupt, offset, left, "no frame begins here");
    case HeaderCheck::kBadChecksum:
      return Lost(FrameOutcome::kCorrupt, offset, left, "a frame's header is damaged");
    case HeaderCheck::kOverLimit:
      return Lost(FrameOutcome::kCorrupt, offset, left,
                  Describe(header) + ": larger than the format allows");
    case HeaderCheck::kGood:
      break;
  }
  header_is_good = true;
  const uint64_t size = kFrameHeaderBytes + header.stored_size;
  if (size > left) {
    return Lost(FrameOutcome::kTornTail, offset, left,
                Describe(header) + ": the file stops inside it");
  }
  const auto corrupt = [&](const std::string& what) {
    payload.clear();
    return Lost(FrameOutcome::kCorrupt, offset, size, Describe(header) + ": " + what);
  };
  const bool packed = header.codec == FrameCodec::kZstd;
  std::vector<std::byte>& stored = packed ? stored_ : payload;
  stored.resize(header.stored_size);
  const Result<size_t> read = file_.ReadAt(offset + kFrameHeaderBytes, stored);
  if (!read) return corrupt(read.error().message);
  if (*read < stored.size()) {
    return Lost(FrameOutcome::kTornTail, offset, left, "the file became shorter while it was read");
  }
  if (Checksum(stored) != header.payload_checksum) return corrupt("its checksum does not match");
  if (packed) {
    payload.resize(header.raw_size);
    const Status decoded = zstd_.Decompress(stored_, payload);
    if (!decoded) return corrupt(decoded.error().message);
  } else if (header.codec != FrameCodec::kNone) {
    return corrupt("unknown compression " + std::to_string(static_cast<int>(header.codec)));
  } else if (header.raw_size != header.stored_size) {
    return corrupt("stored and decoded sizes differ without compression");
  }
  FrameResult result;
  result.type = header.type;
  result.offset = offset;
  result.size = size;
  return result;
}

FrameResult FrameReader::ReadAt(uint64_t offset, std::vector<std::byte>& payload) {
  bool header_is_good = false;
  return ReadFrame(offset, payload, header_is_good);
}

FrameResult FrameReader::AtEnd() {
  if (finished_at_ == next_) {
    FrameResult result;
    result.outcome = FrameOutcome::kCleanEnd;
    result.offset = next_;
    return result;
  }
  return Lost(FrameOutcome::kTornTail, next_, 0, "the file stops without a footer");
}

FrameResult FrameReader::Next(std::vector<std::byte>& payload) {
  for (;;) {
    if (next_ >= file_.size()) {
      payload.clear();
      return AtEnd();
    }
    bool header_is_good = false;
    FrameResult result = ReadFrame(next_, payload, header_is_good);
    switch (result.outcome) {
      case FrameOutcome::kRecord:
        next_ += result.size;
        if (result.type == FrameType::kFooter) last_footer_ = result.offset;
        if (result.type != FrameType::kEnd) return result;
        if (last_footer_ != 0 && FooterOffsetOf(payload) == last_footer_) finished_at_ = next_;
        continue;
      case FrameOutcome::kCorrupt: {
        payload.clear();
        // A good header says where the next frame is; otherwise it has to be looked for.
        if (!header_is_good) {
          // Space that a file system gave to the file and never filled, after a crash of the
          // machine.
          if (OnlyZerosFrom(next_)) {
            return Lost(FrameOutcome::kTornTail, next_, file_.size() - next_,
                        "the file ends with zeros");
          }
          result.size = FindFrame(next_ + 1) - next_;
        }
        next_ += result.size;
        return result;
      }
      case FrameOutcome::kTornTail:
      case FrameOutcome::kCleanEnd:
        payload.clear();
        return result;
    }
  }
}

// The first offset from `from` on at which a frame's header is intact, or the end of the file.
uint64_t FrameReader::FindFrame(uint64_t from) {
  std::vector<std::byte> window(kScanBytes);
  while (from + kFrameHeaderBytes <= file_.size()) {
    const uint64_t data = file_.NextData(from);
    if (data > from) {  // no header begins with a zero
      from = data;
      continue;
    }
    const Result<size_t> got = file_.ReadAt(from, window);
    if (!got || *got < kFrameHeaderBytes) break;
    const size_t last = *got - kFrameHeaderBytes;
    for (size_t i = 0; i <= last; ++i) {
      const void* found = std::memchr(&window[i], kSync[0], last - i + 1);
      if (found == nullptr) break;
      i = static_cast<size_t>(static_cast<const std::byte*>(found) - window.data());
      FrameHeader header;
      const std::span<const std::byte, kFrameHeaderBytes> bytes(&window[i], kFrameHeaderBytes);
      if (DecodeFrameHeader(bytes, header) == HeaderCheck::kGood) return from + i;
    }
    from += last + 1;
  }
  return file_.size();
}

bool FrameReader::OnlyZerosFrom(uint64_t from) {
  std::vector<std::byte> window(kScanBytes);
  while (from < file_.size()) {
    const uint64_t data = file_.NextData(from);
    if (data > from) {
      from = data;
      continue;
    }
    const Result<size_t> got = file_.ReadAt(from, window);
    if (!got || *got == 0) return false;
    const auto end = window.begin() + static_cast<ptrdiff_t>(*got);
    if (std::any_of(window.begin(), end, [](std::byte b) { return b != std::byte{0}; })) {
      return false;
    }
    from += *got;
  }
  return true;
}

Result<uint64_t> FindFooter(const ReadFile& file) {
  const auto none = [&] {
    return Fail(ErrorCode::kNotFound, file.name() + " has no footer at its end");
  };
  if (file.size() < kMagicBytes + kEndFrameBytes) return none();
  FrameReader reader(file);
  std::vector<std::byte> payload;
  const uint64_t end_offset = file.size() - kEndFrameBytes;
  const FrameResult end = reader.ReadAt(end_offset, payload);
  if (end.outcome != FrameOutcome::kRecord || end.type != FrameType::kEnd) return none();
  const uint64_t footer_offset = FooterOffsetOf(payload);
  if (footer_offset < kMagicBytes || footer_offset >= end_offset) return none();
  const FrameResult footer = reader.ReadAt(footer_offset, payload);
  if (footer.outcome != FrameOutcome::kRecord || footer.type != FrameType::kFooter ||
      footer.offset + footer.size != end_offset) {
    return none();
  }
  return footer_offset;
}

}  // namespace deja::format
