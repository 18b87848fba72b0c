#include "tests/unit/format/log/rank_scan.h"

#include <dirent.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "common/os/file.h"
#include "format/tail/tail_reader.h"
#include "format/tensor/element_difference.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {
namespace {

class Scanner {
 public:
  explicit Scanner(RankScan& scan) : scan_(scan) {}

  void ScanFile(const std::string& path) {
    auto file = OpenReadFile(path);
    if (!file) return Problem(file.error().message);
    FrameReader reader(**file);
    if (const Status magic = reader.CheckMagic(); !magic) return Problem(magic.error().message);
    const bool of_events = path.ends_with(kEventsFile);
    std::vector<std::byte> payload;
    for (;;) {
      const FrameResult frame = reader.Next(payload);
      if (frame.outcome == FrameOutcome::kRecord) {
        TakeFrame(frame.type, payload, of_events, frame.offset);
        continue;
      }
      scan_.bad_bytes += frame.outcome == FrameOutcome::kCleanEnd ? 0 : frame.size;
      if (frame.outcome == FrameOutcome::kCorrupt) continue;
      if (of_events) scan_.finished = frame.outcome == FrameOutcome::kCleanEnd;
      return;
    }
  }

  void ScanTail() {
    if (scan_.tail_path.empty()) return;
    auto tail = TailReader::Open(scan_.tail_path, scan_.tail_id);
    if (!tail) {
      if (tail.error().code != ErrorCode::kNotFound) Problem(tail.error().message);
      return;
    }
    if (!(*tail)->damage().empty()) Problem((*tail)->damage());
    const std::map<uint32_t, uint64_t> in_folder = last_seq_;
    const size_t ordinary = (*tail)->events().size() - (*tail)->emergency_events();
    for (size_t i = 0; i < (*tail)->events().size(); ++i) {
      Event event;
      if (!DecodeEvent((*tail)->events()[i], event)) {
        Problem("an event of the tail does not decode");
        continue;
      }
      const auto last = in_folder.find(event.thread);
      if (i < ordinary && last != in_folder.end() && event.seq <= last->second) continue;
      ++scan_.events_from_tail;
      TakeEvent((*tail)->events()[i], i < ordinary);
    }
    for (const TailPayload& part : (*tail)->payloads()) {
      std::string bytes(part.size, '\0');
      const Status read = (*tail)->ReadPayload(
          part, std::span(reinterpret_cast<std::byte*>(bytes.data()), bytes.size()));
      if (!read) Problem(read.error().message);
      TakePiece(part.hash, part.total_size, part.offset, bytes);
    }
  }

  void Close() {
    for (auto& [hash, partial] : partial_) {
      std::string whole(partial.total, '\0');
      uint64_t covered = 0;
      for (const auto& [offset, bytes] : partial.pieces) {
        if (offset > covered) break;
        if (offset + bytes.size() > partial.total) {
          Problem("a chunk reaches beyond its payload");
          break;
        }
        whole.replace(offset, bytes.size(), bytes);
        covered = std::max<uint64_t>(covered, offset + bytes.size());
      }
      if (covered < partial.total) continue;
      if (HashOf(whole) != hash) Problem("a payload does not have its hash");
      scan_.payloads[hash] = std::move(whole);
    }
  }

 private:
  struct Partial {
    uint64_t total = 0;
    std::map<uint64_t, std::string> pieces;
  };

  void Problem(const std::string& what) {
    if (scan_.problem.empty()) scan_.problem = what;
  }

  void TakeFrame(FrameType type, const std::vector<std::byte>& payload, bool of_events,
                 uint64_t offset) {
    if (type == FrameType::kHeader) {
      TraceHeader header;
      if (!Decode(payload, header)) return Problem("the header does not decode");
      scan_.rank = header.rank;
      scan_.attempt = header.attempt;
      scan_.tail_path = header.tail.path;
      scan_.tail_id = header.tail.id;
      scan_.producer = header.producer;
    } else if (type == FrameType::kEvents) {
      WireReader reader(payload);
      std::span<const std::byte> event;
      while (NextInBatch(reader, event)) TakeEvent(event, true);
      if (!reader.ok()) Problem("a batch does not decode");
    } else if (type == FrameType::kPayloadChunk) {
      PayloadChunk chunk;
      if (!Decode(payload, chunk)) return Problem("a chunk does not decode");
      std::string bytes(chunk.size, '\0');
      const DifferenceKind kind{static_cast<TensorCodec>(chunk.codec), chunk.element_size};
      const bool differs = IsDifference(kind.codec);
      const Status decoded = DecodeTensor(
          differs ? TensorCodec::kPlanes : kind.codec, chunk.element_size, AsBytes(chunk.data),
          std::span(reinterpret_cast<std::byte*>(bytes.data()), bytes.size()));
      if (!decoded) return Problem(decoded.error().message);
      if (differs) {
        const std::string& base = chunks_[chunk.base];
        if (base.size() != bytes.size()) return Problem("a difference to what is not there");
        ApplyDifference(kind, AsBytes(base),
                        std::span(reinterpret_cast<std::byte*>(bytes.data()), bytes.size()));
        ++scan_.differences;
      }
      chunks_[offset] = bytes;
      ++scan_.payload_chunks;
      TakePiece(chunk.hash, chunk.total_size, chunk.offset, bytes);
    } else if (type == FrameType::kIndex) {
      Index index;
      if (!Decode(payload, index)) return Problem("the index does not decode");
      scan_.index_payloads += index.payloads.size();
      for (const BatchInfo& batch : index.batches) {
        for (const ThreadRange& range : batch.threads) {
          scan_.index_events += range.last_seq - range.first_seq + 1;
        }
      }
    } else if (type == FrameType::kFooter && of_events) {
      scan_.footer = {};
      if (!Decode(payload, scan_.footer)) Problem("the footer does not decode");
    }
  }

  void TakeEvent(std::span<const std::byte> encoded, bool in_order) {
    Event event;
    if (!DecodeEvent(encoded, event)) return Problem("an event does not decode");
    ScannedEvent scanned{event.thread, event.seq, EventKind::kNone, ""};
    if (const auto* note = event.As<Note>()) {
      scanned.kind = EventKind::kNote;
      scanned.note = note->text;
    } else if (const auto* degraded = event.As<Degraded>()) {
      scanned.kind = EventKind::kDegraded;
      scanned.note = degraded->reason;
    } else if (event.As<ClockRun>() != nullptr) {
      scanned.kind = EventKind::kClockRun;
    }
    if (!seen_.insert({event.thread, event.seq}).second) {
      Problem("event " + std::to_string(event.seq) + " of thread " + std::to_string(event.thread) +
              " comes twice");
    }
    if (in_order) {
      const auto [last, is_first] = last_seq_.try_emplace(event.thread, event.seq);
      if (!is_first && event.seq <= last->second) Problem("events are out of order");
      last->second = event.seq;
    }
    scan_.events.push_back(std::move(scanned));
  }

  void TakePiece(const Hash128& hash, uint64_t total, uint64_t offset, const std::string& bytes) {
    Partial& partial = partial_[hash];
    partial.total = total;
    std::string& piece = partial.pieces[offset];
    if (piece.size() < bytes.size()) piece = bytes;
  }

  std::map<uint64_t, std::string> chunks_;  // of the payload file, decoded, by offset
  RankScan& scan_;
  std::map<uint32_t, uint64_t> last_seq_;
  std::set<std::pair<uint32_t, uint64_t>> seen_;
  std::map<Hash128, Partial> partial_;
};

}  // namespace

std::vector<std::string> RankScan::Notes(uint32_t thread) const {
  std::vector<std::string> notes;
  for (const ScannedEvent& event : events) {
    if (event.thread == thread && event.kind == EventKind::kNote) notes.push_back(event.note);
  }
  return notes;
}

RankScan ScanRank(const std::string& folder, bool use_tail) {
  RankScan scan;
  Scanner scanner(scan);
  scanner.ScanFile(folder + "/" + kEventsFile);
  scanner.ScanFile(folder + "/" + kPayloadsFile);
  if (use_tail) scanner.ScanTail();
  scanner.Close();
  return scan;
}

std::string NoteEvent(uint32_t thread, uint64_t seq, const std::string& text) {
  Note note;
  note.text = text;
  return EncodeEventToString(EventHead{thread, seq, 1000 + seq}, note);
}

Hash128 HashOf(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Hash128 result;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), result.bytes.begin());
  return result;
}

std::string SomeBytes(uint64_t seed, size_t size) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t at = 0; at < size; at += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof(state), size - at));
  }
  return bytes;
}

std::vector<std::string> ListDir(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace deja::format
