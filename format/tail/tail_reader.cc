#include "format/tail/tail_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "common/os/file.h"
#include "common/process/process_identity.h"
#include "format/tail/clock_run.h"
#include "format/tail/raw_event.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {
namespace {

constexpr uint64_t kMaxTailEventBytes = uint64_t{1} << 30;  // of all rings together
constexpr uint64_t kMaxTailBlocks = 1 << 24;
constexpr size_t kKeepBytes = 256 << 10;

// The header as plain numbers: what a file holds is not an atomic.
struct PlainHeader {
  ProcessIdentity process;
  std::string id;
  uint64_t directory_offset, emergency_offset, rings_offset, ring_bytes, arena_offset, arena_bytes;
  uint32_t ring_count, emergency_count, state;
  uint64_t arena_head, arena_tail;
};

template <typename T>
T Get(const std::byte* base, size_t offset) {
  T value;
  std::memcpy(&value, base + offset, sizeof value);
  return value;
}

bool InFile(uint64_t offset, uint64_t size, uint64_t file_bytes) {
  return offset <= file_bytes && size <= file_bytes - offset;
}

class TailReaderImpl final : public TailReader {
 public:
  explicit TailReaderImpl(std::unique_ptr<ReadFile> file) : file_(std::move(file)) {}

  Status Load(std::string_view id);

  [[nodiscard]] const TailIdentity& identity() const override { return identity_; }
  [[nodiscard]] bool WriterAlive() const override { return IsAlive(header_.process); }
  [[nodiscard]] const std::vector<std::span<const std::byte>>& events() const override {
    return events_;
  }
  [[nodiscard]] size_t emergency_events() const override { return emergency_events_; }
  [[nodiscard]] const std::vector<TailPayload>& payloads() const override { return payloads_; }
  [[nodiscard]] const Pressure& pressure() const override { return pressure_; }
  [[nodiscard]] const std::string& damage() const override { return damage_; }

  Status ReadPayload(const TailPayload& part, std::span<std::byte> out) const override {
    if (out.size() != part.size) {
      return Fail(ErrorCode::kInvalidArgument, "the buffer does not have the size of the part");
    }
    return ReadExactly(part.file_offset, out);
  }

 private:
  [[nodiscard]] Status ReadExactly(uint64_t offset, std::span<std::byte> out) const {
    DEJA_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(offset, out));
    if (got != out.size()) return Fail(ErrorCode::kTruncated, file_->name() + " ends early");
    return {};
  }
  template <typename T>
  Result<T> ReadNumber(uint64_t offset) const {
    std::byte bytes[sizeof(T)];
    DEJA_RETURN_IF_ERROR(ReadExactly(offset, bytes));
    return Get<T>(bytes, 0);
  }
  void Damage(const std::string& what) {
    if (damage_.empty()) damage_ = file_->name() + ": " + what;
  }

  Status LoadHeader(std::string_view id);
  Status LoadRing(uint32_t ring);
  Status LoadClocks(uint32_t ring);
  [[nodiscard]] uint64_t ClocksOffset(uint32_t ring) const {
    return header_.rings_offset + uint64_t{ring} * RingStride(header_.ring_bytes);
  }
  void TakeRecords(std::span<const std::byte> bytes, uint64_t position, uint64_t drained,
                   uint32_t ring);
  const char* TakeRecord(std::span<const std::byte> bytes, uint64_t position, uint64_t& taken);
  std::span<const std::byte> Keep(std::span<const std::byte> bytes);
  Status LoadEmergencySlots();
  Status LoadArena();
  // The block at `position`, which counts from the beginning of the recording; nothing if it is not
  // one.
  Result<std::optional<uint64_t>> LoadBlock(uint64_t position);

  std::unique_ptr<ReadFile> file_;
  PlainHeader header_{};
  TailIdentity identity_;
  std::vector<std::vector<std::byte>> buffers_;
  std::span<std::byte> room_;  // of the newest buffer for events that are made here
  std::vector<std::span<const std::byte>> events_;
  size_t emergency_events_ = 0;
  std::vector<TailPayload> payloads_;
  Pressure pressure_;
  uint64_t event_bytes_ = 0;
  bool live_ = false;
  std::string damage_;
};

Status TailReaderImpl::LoadHeader(std::string_view id) {
  std::byte page[sizeof(TailHeader)];
  DEJA_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(0, page));
  if (got < sizeof kTailMagic || std::memcmp(page, kTailMagic, sizeof kTailMagic) != 0) {
    return Fail(ErrorCode::kForeign, "opening: " + file_->name() + ": not the tail of a recording");
  }
  if (got < sizeof page)
    return Fail(ErrorCode::kTruncated,
                "opening: " + file_->name() + ": the file stops inside its header");
  const auto version = Get<uint32_t>(page, offsetof(TailHeader, version));
  if (version != kTailVersion) {
    return Fail(ErrorCode::kUnsupportedVersion,
                "opening: " + file_->name() + ": a tail of version " + std::to_string(version) +
                    ", this Deja reads version " + std::to_string(kTailVersion) +
                    "; use the Deja that recorded it");
  }
  PlainHeader& h = header_;
  h.id.assign(reinterpret_cast<const char*>(page) + offsetof(TailHeader, id), 16);
  if (!id.empty() && id != h.id) {
    return Fail(ErrorCode::kForeign,
                "opening: " + file_->name() + ": the tail of another recording");
  }
  h.process.pid = Get<uint32_t>(page, offsetof(TailHeader, pid));
  h.process.start_ticks = Get<uint64_t>(page, offsetof(TailHeader, start_ticks));
  h.process.pid_namespace = Get<uint64_t>(page, offsetof(TailHeader, pid_namespace));
  std::memcpy(h.process.boot_id.data(), page + offsetof(TailHeader, boot_id), 16);
  h.directory_offset = Get<uint64_t>(page, offsetof(TailHeader, directory_offset));
  h.emergency_offset = Get<uint64_t>(page, offsetof(TailHeader, emergency_offset));
  h.rings_offset = Get<uint64_t>(page, offsetof(TailHeader, rings_offset));
  h.ring_bytes = Get<uint64_t>(page, offsetof(TailHeader, ring_bytes));
  h.arena_offset = Get<uint64_t>(page, offsetof(TailHeader, arena_offset));
  h.arena_bytes = Get<uint64_t>(page, offsetof(TailHeader, arena_bytes));
  h.ring_count = Get<uint32_t>(page, offsetof(TailHeader, ring_count));
  h.emergency_count = Get<uint32_t>(page, offsetof(TailHeader, emergency_count));
  h.state = Get<uint32_t>(page, offsetof(TailHeader, state));
  pressure_ = {h.arena_bytes,
               Get<uint64_t>(page, offsetof(TailHeader, peak_bytes)),
               Get<uint64_t>(page, offsetof(TailHeader, waits)),
               Get<uint64_t>(page, offsetof(TailHeader, waited_ns)),
               Get<uint64_t>(page, offsetof(TailHeader, dropped_payloads)),
               Get<uint64_t>(page, offsetof(TailHeader, dropped_payload_bytes))};
  const uint64_t size = file_->size();
  const bool sane = std::has_single_bit(h.ring_bytes) && h.ring_bytes >= kTailPage &&
                    h.ring_bytes <= kTailMaxRingBytes && h.ring_count <= kTailMaxRings &&
                    h.emergency_count <= 1024 && h.arena_bytes <= kTailMaxArenaBytes &&
                    h.arena_bytes > 0 && h.arena_bytes % kTailBlockAlign == 0 &&
                    h.state <= static_cast<uint32_t>(TailState::kFinished) &&
                    InFile(h.directory_offset, h.ring_count * sizeof(RingInfo), size) &&
                    InFile(h.emergency_offset, h.emergency_count * sizeof(EmergencySlot), size) &&
                    InFile(h.rings_offset, h.ring_count * RingStride(h.ring_bytes), size) &&
                    InFile(h.arena_offset, h.arena_bytes, size);
  if (!sane) return Fail(ErrorCode::kCorrupt, file_->name() + ": its header contradicts itself");
  identity_ = {file_->name(), h.id, h.process.pid, h.process.start_ticks,
               static_cast<TailState>(h.state)};
  return {};
}

Status TailReaderImpl::Load(std::string_view id) {
  DEJA_RETURN_IF_ERROR(LoadHeader(id));
  live_ = WriterAlive();
  for (uint32_t ring = 0; ring < header_.ring_count; ++ring) {
    DEJA_RETURN_IF_ERROR(LoadRing(ring));
    // Those of a live process may change while they are read.
    if (!live_) DEJA_RETURN_IF_ERROR(LoadClocks(ring));
  }
  DEJA_RETURN_IF_ERROR(LoadEmergencySlots());
  return LoadArena();
}

Status TailReaderImpl::LoadRing(uint32_t ring) {
  const uint64_t info = header_.directory_offset + uint64_t{ring} * sizeof(RingInfo);
  const uint64_t data = ClocksOffset(ring) + kTailPage;
  for (int attempt = 0;; ++attempt) {
    DEJA_ASSIGN_OR_RETURN(const auto tail, ReadNumber<uint64_t>(info + offsetof(RingInfo, tail)));
    DEJA_ASSIGN_OR_RETURN(const auto head, ReadNumber<uint64_t>(info + offsetof(RingInfo, head)));
    if (tail == head) return {};
    const uint64_t used = head - tail;
    if (used > header_.ring_bytes || tail % kTailRecordAlign != 0) {
      if (live_ && attempt < 8) continue;  // drained and refilled between the two reads
      Damage("ring " + std::to_string(ring) + " is fuller than it can be");
      return {};
    }
    if (used > kMaxTailEventBytes - event_bytes_) {
      Damage("its rings hold more than the format allows");
      return {};
    }
    std::vector<std::byte> bytes(used);
    const uint64_t begin = tail & (header_.ring_bytes - 1);
    const uint64_t first = std::min(used, header_.ring_bytes - begin);
    DEJA_RETURN_IF_ERROR(ReadExactly(data + begin, std::span(bytes).first(first)));
    DEJA_RETURN_IF_ERROR(ReadExactly(data, std::span(bytes).subspan(first)));
    // What a live process has drained meanwhile may have been overwritten, and is in its folder.
    DEJA_ASSIGN_OR_RETURN(const auto drained,
                          ReadNumber<uint64_t>(info + offsetof(RingInfo, tail)));
    event_bytes_ += used;
    buffers_.push_back(std::move(bytes));
    TakeRecords(buffers_.back(), tail, drained, ring);
    return {};
  }
}

// Readings that are not in an event of the ring yet.
Status TailReaderImpl::LoadClocks(uint32_t ring) {
  const uint64_t info = header_.directory_offset + uint64_t{ring} * sizeof(RingInfo);
  DEJA_ASSIGN_OR_RETURN(const auto used, ReadNumber<uint32_t>(info + offsetof(RingInfo, used)));
  if (used == 0) return {};
  std::byte raw[sizeof(ClockArea)];
  DEJA_RETURN_IF_ERROR(ReadExactly(ClocksOffset(ring), raw));
  auto count = Get<uint32_t>(raw, offsetof(ClockArea, count));
  if ((count & ClockArea::kFlushing) != 0) {
    DEJA_ASSIGN_OR_RETURN(const auto records,
                          ReadNumber<uint64_t>(info + offsetof(RingInfo, records)));
    if (records != Get<uint64_t>(raw, offsetof(ClockArea, records_before))) return {};
    count &= ~ClockArea::kFlushing;
  }
  if (count == 0) return {};
  if (count > kMaxClockReads) {
    Damage("the clock readings of ring " + std::to_string(ring) + " are more than can be");
    return {};
  }
  const EventHead head{Get<uint32_t>(raw, offsetof(ClockArea, thread)),
                       Get<uint64_t>(raw, offsetof(ClockArea, seq)),
                       Get<uint64_t>(raw, offsetof(ClockArea, time_ns))};
  uint8_t sources[kMaxClockReads];
  int64_t values[kMaxClockReads];
  std::memcpy(sources, raw + offsetof(ClockArea, sources), sizeof sources);
  std::memcpy(values, raw + offsetof(ClockArea, values), sizeof values);
  for (uint32_t i = 0; i < count; ++i) {
    if (sources[i] < kReadingSources) continue;
    Damage("the clock readings of ring " + std::to_string(ring) + " are of no clock");
    return {};
  }
  buffers_.emplace_back(kMaxClockRunBytes);
  const size_t size = EncodeClockRun(head, std::span(sources).first(count),
                                     std::span(values).first(count), buffers_.back().data());
  events_.push_back(std::span<const std::byte>(buffers_.back()).first(size));
  return {};
}

void TailReaderImpl::TakeRecords(std::span<const std::byte> bytes, uint64_t position,
                                 uint64_t drained, uint32_t ring) {
  // Records begin where `drained` says; what is before it may be half overwritten.
  if (drained > position) {
    if (drained - position >= bytes.size()) return;
    bytes = bytes.subspan(drained - position);
  }
  position = std::max(position, drained);
  while (!bytes.empty()) {
    uint64_t taken = 0;
    const char* problem = TakeRecord(bytes, position, taken);
    if (problem != nullptr) {
      Damage("ring " + std::to_string(ring) + " " + problem + "; " + std::to_string(bytes.size()) +
             " bytes are lost");
      return;
    }
    bytes = bytes.subspan(taken);
    position += taken;
  }
}

// The record that `bytes` begin with; null if it is one.
const char* TailReaderImpl::TakeRecord(std::span<const std::byte> bytes, uint64_t position,
                                       uint64_t& taken) {
  if (bytes.size() < sizeof(RecordHeader)) return "ends in the header of a record";
  const auto header = Get<RecordHeader>(bytes.data(), 0);
  const bool raw = (header.length & kRawRecord) != 0;
  const uint32_t length = header.length & ~kRawRecord;
  if (length == 0 || length > kMaxEventBytes || RecordBytes(length) > bytes.size())
    return "holds a record of impossible length";
  taken = RecordBytes(length);
  const std::span<const std::byte> event = bytes.subspan(sizeof header, length);
  const uint32_t check = raw ? RawCheckOf(position, event)
                             : static_cast<uint32_t>(XXH3_64bits(event.data(), event.size()));
  if (check != header.check) return "holds a record whose checksum is wrong";
  if (!raw) {
    events_.push_back(event);
    return nullptr;
  }
  std::byte encoded[kMaxEventBytes];
  const size_t size = EncodeRawEvent(event, encoded);
  if (size == 0) return "holds a record that is no event";
  events_.push_back(Keep(std::span<const std::byte>(encoded).first(size)));
  return nullptr;
}

// A copy that lives as long as this.
std::span<const std::byte> TailReaderImpl::Keep(std::span<const std::byte> bytes) {
  if (room_.size() < bytes.size()) {
    buffers_.emplace_back(std::max<size_t>(kKeepBytes, bytes.size()));
    room_ = buffers_.back();
  }
  const std::span<std::byte> kept = room_.first(bytes.size());
  std::memcpy(kept.data(), bytes.data(), bytes.size());
  room_ = room_.subspan(bytes.size());
  return kept;
}

Status TailReaderImpl::LoadEmergencySlots() {
  for (uint32_t i = 0; i < header_.emergency_count; ++i) {
    const uint64_t at = header_.emergency_offset + uint64_t{i} * sizeof(EmergencySlot);
    std::vector<std::byte> slot(sizeof(EmergencySlot));
    DEJA_RETURN_IF_ERROR(ReadExactly(at, slot));
    const auto state = Get<uint32_t>(slot.data(), offsetof(EmergencySlot, state));
    if (state != static_cast<uint32_t>(SlotState::kComplete)) continue;
    const auto length = Get<uint32_t>(slot.data(), offsetof(EmergencySlot, length));
    const auto check = Get<uint32_t>(slot.data(), offsetof(EmergencySlot, check));
    if (length == 0 || length > sizeof(EmergencySlot::bytes) ||
        static_cast<uint32_t>(XXH3_64bits(slot.data() + offsetof(EmergencySlot, bytes), length)) !=
            check) {
      Damage("emergency slot " + std::to_string(i) + " is not what its header says");
      continue;
    }
    buffers_.push_back(std::move(slot));
    events_.emplace_back(buffers_.back().data() + offsetof(EmergencySlot, bytes), length);
    ++emergency_events_;
  }
  return {};
}

Result<std::optional<uint64_t>> TailReaderImpl::LoadBlock(uint64_t position) {
  const uint64_t begin = position % header_.arena_bytes;
  const uint64_t at = header_.arena_offset + begin;
  std::byte raw[sizeof(BlockHeader)];
  DEJA_RETURN_IF_ERROR(ReadExactly(at, raw));
  const auto state = static_cast<BlockState>(Get<uint32_t>(raw, offsetof(BlockHeader, state)));
  const auto block_bytes = Get<uint64_t>(raw, offsetof(BlockHeader, block_bytes));
  const bool known = state == BlockState::kReserved || state == BlockState::kComplete ||
                     state == BlockState::kFiller || state == BlockState::kDuplicate;
  if (!known || block_bytes < sizeof(BlockHeader) || block_bytes % kTailBlockAlign != 0 ||
      block_bytes > header_.arena_bytes - begin) {
    return std::optional<uint64_t>();
  }
  if (state != BlockState::kComplete) return std::optional(block_bytes);
  TailPayload part;
  std::memcpy(part.hash.bytes.data(), raw + offsetof(BlockHeader, hash), 16);
  part.total_size = Get<uint64_t>(raw, offsetof(BlockHeader, total_size));
  part.offset = Get<uint64_t>(raw, offsetof(BlockHeader, offset));
  part.size = Get<uint64_t>(raw, offsetof(BlockHeader, size));
  part.element_size = ElementSizeOf(Get<uint32_t>(raw, offsetof(BlockHeader, kind)));
  part.step = Get<uint32_t>(raw, offsetof(BlockHeader, step));
  part.segment = Get<uint32_t>(raw, offsetof(BlockHeader, segment));
  part.file_offset = at + sizeof(BlockHeader);
  const bool sane = part.size <= block_bytes - sizeof(BlockHeader) &&
                    part.size <= part.total_size && part.offset <= part.total_size - part.size &&
                    std::has_single_bit(part.element_size) && part.element_size <= 8;
  if (!sane) return std::optional<uint64_t>();
  payloads_.push_back(part);
  return std::optional(block_bytes);
}

Status TailReaderImpl::LoadArena() {
  DEJA_ASSIGN_OR_RETURN(const auto tail, ReadNumber<uint64_t>(offsetof(TailHeader, arena_tail)));
  DEJA_ASSIGN_OR_RETURN(const auto head, ReadNumber<uint64_t>(offsetof(TailHeader, arena_head)));
  if (head - tail > header_.arena_bytes || tail % kTailBlockAlign != 0) {
    if (!live_) Damage("its payload arena is fuller than it can be");
    return {};
  }
  std::vector<uint64_t> positions;
  uint64_t position = tail;
  for (uint64_t blocks = 0; position != head; ++blocks) {
    const size_t before = payloads_.size();
    DEJA_ASSIGN_OR_RETURN(const std::optional<uint64_t> block_bytes, LoadBlock(position));
    if (!block_bytes || *block_bytes > head - position || blocks == kMaxTailBlocks) {
      if (!live_) {
        Damage("its payload arena holds a block that is not one; " +
               std::to_string(head - position) + " bytes are lost");
      }
      payloads_.resize(before);
      break;
    }
    if (payloads_.size() > before) positions.push_back(position);
    position += *block_bytes;
  }
  if (!live_) return {};
  // What a live process has drained meanwhile may have been overwritten, and is in its folder.
  DEJA_ASSIGN_OR_RETURN(const auto drained, ReadNumber<uint64_t>(offsetof(TailHeader, arena_tail)));
  size_t gone = 0;
  while (gone < positions.size() && positions[gone] < drained) ++gone;
  payloads_.erase(payloads_.begin(), payloads_.begin() + static_cast<ptrdiff_t>(gone));
  return {};
}

}  // namespace

Result<std::unique_ptr<TailReader>> TailReader::Open(const std::string& path, std::string_view id) {
  return Open(OpenReadFile(path), id);
}

Result<std::unique_ptr<TailReader>> TailReader::Open(Result<std::unique_ptr<ReadFile>> file,
                                                     std::string_view id) {
  if (!file) return tl::unexpected<Error>(std::move(file.error()));
  auto reader = std::make_unique<TailReaderImpl>(std::move(*file));
  DEJA_RETURN_IF_ERROR(reader->Load(id));
  return reader;
}

}  // namespace deja::format
