// The tail: the shared mapping that holds what a recorded process has appended and not yet written
// to its folder. docs/FORMAT.md, "The tail", is the specification.
//
// One file per process, `deja-<job id>-<pid>-<nonce>.tail`, sparse:
//
//   header page | ring directory | emergency slots | event rings, each after a page | payload
//   arena
//
// Everything is little-endian and at the offsets that the header names. The process writes through
// a mapping. It publishes by a release store of `head`, of a block's `state`, or of a slot's
// `state`. What is published is complete in the file from that instant, also if the process dies in
// the next one.
//
// Event ring: bytes [tail, head) modulo ring_bytes are records {u32 length, u32 check, bytes, zeros
// to a multiple of 8}; the bytes are a serialized Event, or a raw one (raw_event.h) if `length` has
// kRawRecord. The one producer advances `head` after a record is complete, the drainer advances
// `tail` after the record has been written to the folder.
//
// The page in front of a ring is its ClockArea: clock readings of the ring's thread that are not an
// event yet. `count` is advanced when a reading is complete; the thread turns them into a ClockRun
// event of the ring before it appends anything else, or when the area is full.
//
// Payload arena: bytes [arena_tail, arena_head) modulo arena_bytes are blocks {BlockHeader, bytes,
// padding to a multiple of 64}. Blocks never straddle the arena's end (a filler takes what is left
// there). Space is taken in order under a lock that lives in the process; the bytes are copied
// outside of it, and `state` says when they are complete. Blocks are given back in order.
//
// Plain layout, no ownership. The atomics are lock-free words, so that a reader of the file sees
// integers.
#ifndef DEJA_FORMAT_TAIL_TAIL_FORMAT_H_
#define DEJA_FORMAT_TAIL_TAIL_FORMAT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace deja::format {

inline constexpr char kTailMagic[8] = {'D', 'E', 'J', 'A', 'T', 'A', 'I', 'L'};
inline constexpr uint32_t kTailVersion = 6;  // private to one version of Deja
inline constexpr size_t kTailPage = 4096;

inline constexpr uint32_t kTailRings = 128;
// Ring shared, under a lock, by the threads that find no other one.
inline constexpr uint32_t kTailSharedRing = 0;
inline constexpr uint32_t kTailMaxRings = 4096;  // what a reader accepts
inline constexpr uint32_t kTailEmergencySlots = 8;
inline constexpr size_t kTailRecordAlign = 8;
inline constexpr size_t kTailBlockAlign = 64;
inline constexpr uint64_t kTailMinRingBytes = 64 << 10;
inline constexpr uint64_t kTailMaxRingBytes = 1ull << 30;
inline constexpr uint64_t kTailMaxArenaBytes = 1ull << 44;

// Larger events are refused; what is bigger (file contents, …) is a payload.
inline constexpr size_t kMaxEventBytes = 32 << 10;
inline constexpr size_t kMaxEmergencyBytes = 8 << 10;

// What the process that owns the tail is.
enum class TailState : uint32_t {
  kOpen = 0,      // not a rank (yet): the tail has no use if the process is gone
  kRank = 1,      // the header of a rank's folder names this tail
  kFinished = 2,  // everything is in the folder
};

struct TailHeader {
  alignas(8) char magic[8];
  uint32_t version;
  uint32_t pid;
  uint8_t id[16];          // random; also in TraceHeader.tail.id
  uint64_t start_ticks;    // field 22 of /proc/PID/stat: with pid and boot id, one process
  uint8_t boot_id[16];     // /proc/sys/kernel/random/boot_id
  uint64_t pid_namespace;  // inode of /proc/self/ns/pid
  uint64_t file_bytes;
  uint64_t directory_offset;  // of RingInfo[ring_count]
  uint64_t emergency_offset;  // of EmergencySlot[emergency_count]
  uint64_t rings_offset;      // of ring_count times {ClockArea in a page, ring of ring_bytes}
  uint64_t ring_bytes;        // power of two
  uint64_t arena_offset;
  uint64_t arena_bytes;  // multiple of kTailBlockAlign
  uint32_t ring_count;
  uint32_t emergency_count;
  std::atomic<uint32_t> state;  // TailState
  alignas(64) std::atomic<uint64_t> arena_head;
  alignas(64) std::atomic<uint64_t> arena_tail;
  // How the buffer fared (Pressure).
  alignas(64) std::atomic<uint64_t> peak_bytes;
  std::atomic<uint64_t> waits;
  std::atomic<uint64_t> waited_ns;
  std::atomic<uint64_t> dropped_payloads;
  std::atomic<uint64_t> dropped_payload_bytes;
};
static_assert(sizeof(TailHeader) <= kTailPage && offsetof(TailHeader, state) == 128);
static_assert(offsetof(TailHeader, arena_head) == 192 && offsetof(TailHeader, arena_tail) == 256);
static_assert(offsetof(TailHeader, peak_bytes) == 320);

struct RingInfo {
  alignas(64) std::atomic<uint64_t> head;  // bytes ever appended
  std::atomic<uint64_t> records;           // records ever appended
  alignas(64) std::atomic<uint64_t> tail;  // bytes ever drained
  std::atomic<uint32_t> used;              // 1 once a thread has claimed the ring
};
static_assert(sizeof(RingInfo) == 128 && offsetof(RingInfo, tail) == 64);

// Readings that one ClockRun event holds at most.
inline constexpr uint32_t kMaxClockReads = 64;

struct ClockArea {
  // In `count`: the readings are being turned into an event.
  static constexpr uint32_t kFlushing = 1u << 31;

  alignas(64) std::atomic<uint32_t> count;
  uint32_t thread;
  uint64_t seq;      // of the event that they will be
  uint64_t time_ns;  // of the first
  // RingInfo::records when the flush began: it is greater once the event is in the ring.
  uint64_t records_before;
  uint8_t sources[kMaxClockReads];
  int64_t values[kMaxClockReads];
};
static_assert(sizeof(ClockArea) <= kTailPage && offsetof(ClockArea, sources) == 32);
static_assert(offsetof(ClockArea, values) == 96);

struct RecordHeader {
  uint32_t length;  // of the event; the record takes this and the header, rounded up to 8
  uint32_t check;   // low half of XXH3-64 of the event; of a raw one RawCheckOf
};
// In RecordHeader::length: the event is raw.
inline constexpr uint32_t kRawRecord = 1u << 31;
static_assert(sizeof(RecordHeader) == 8);

enum class SlotState : uint32_t { kFree = 0, kWriting = 1, kComplete = 2, kDrained = 3 };

struct EmergencySlot {
  std::atomic<uint32_t> state;  // SlotState
  uint32_t length;
  uint32_t check;
  uint32_t reserved;
  uint8_t bytes[8 << 10];
};
static_assert(sizeof(EmergencySlot) == (8 << 10) + 16);

enum class BlockState : uint32_t {
  kReserved = 0x6a720001,  // being copied
  kComplete = 0x6a720002,
  kFiller = 0x6a720003,     // nothing: takes what is left before the arena's end
  kDuplicate = 0x6a720004,  // a payload that another block or the folder has
};

struct BlockHeader {
  std::atomic<uint32_t> state;  // BlockState
  uint32_t kind;                // element size, and the series (PayloadBases) from bit 8 on
  uint8_t hash[16];             // of the whole payload
  uint64_t total_size;          // of the whole payload
  uint64_t offset;              // of this block's bytes in it
  uint64_t size;                // of this block's bytes
  uint64_t block_bytes;         // header, bytes and padding
  uint32_t segment;             // of the payload files; it may go into a later one
  uint32_t step;                // how many steps had begun
};
static_assert(sizeof(BlockHeader) == kTailBlockAlign);

// BlockHeader::kind
constexpr uint32_t BlockKind(uint32_t element_size, uint32_t series) {
  return element_size | series << 8;
}
constexpr uint32_t ElementSizeOf(uint32_t kind) {
  return kind & 0xff;
}
constexpr uint32_t SeriesOf(uint32_t kind) {
  return kind >> 8;
}

// From one ring's clock area to the next one's.
constexpr uint64_t RingStride(uint64_t ring_bytes) {
  return kTailPage + ring_bytes;
}

constexpr uint64_t RecordBytes(uint64_t length) {
  return (sizeof(RecordHeader) + length + kTailRecordAlign - 1) & ~uint64_t{kTailRecordAlign - 1};
}
constexpr uint64_t BlockBytes(uint64_t size) {
  return (sizeof(BlockHeader) + size + kTailBlockAlign - 1) & ~uint64_t{kTailBlockAlign - 1};
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_TAIL_FORMAT_H_
