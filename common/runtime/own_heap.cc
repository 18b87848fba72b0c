#include "common/runtime/own_heap.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>

#include "common/runtime/own_mapping.h"

namespace deja {
namespace {

constexpr size_t kUnit = 16;
constexpr size_t kSmallUnits = 8;             // up to here each number of units is a class
constexpr size_t kChunk = size_t{1} << 20;    // small blocks are cut from chunks
constexpr size_t kMostCut = size_t{1} << 16;  // larger ones are mappings of their own
constexpr size_t kMostKept = size_t{4} << 20;
constexpr uint32_t kMappedClass = 0;
constexpr uint32_t kClasses = 69;
constexpr uint32_t kMagic = 0xde7a4ea9;

// In front of what the caller gets.
struct Header {
  // After the magic number. May lie where FreeBlock::next was, which another thread still reads.
  std::atomic<uint64_t> size_class;
  std::byte* start;  // of the block

  [[nodiscard]] uint32_t SizeClass() const {
    return static_cast<uint32_t>(size_class.load(std::memory_order_relaxed));
  }
  [[nodiscard]] bool IsOurs() const {
    return size_class.load(std::memory_order_relaxed) >> 32 == kMagic;
  }
};
static_assert(sizeof(Header) == kUnit);

struct FreeBlock {
  // Another thread may look at it while the block is being taken.
  std::atomic<FreeBlock*> next;
};

// A stack of blocks: the address of the first one and a count that changes with it, in one word.
struct FreeList {
  std::atomic<uint64_t> head{0};
};
constexpr int kAddressBits = 44;  // of 48, in units

constinit FreeList g_free[kClasses];

struct Chunk {
  std::atomic<size_t> used;
};
constinit std::atomic<Chunk*> g_chunk{nullptr};
// The range of own mappings was not to be had: addresses do not tell whose a block is.
constinit std::atomic<bool> g_elsewhere{false};

uint32_t ClassOf(size_t bytes) {
  const size_t units = (bytes + kUnit - 1) / kUnit;
  if (units <= kSmallUnits) return static_cast<uint32_t>(units);
  const auto bits = static_cast<uint32_t>(std::bit_width(units - 1) - 1);
  const auto step = static_cast<uint32_t>((units - 1) >> (bits - 2)) & 3;
  return kSmallUnits + (bits - 3) * 4 + step + 1;
}

size_t BytesOf(uint32_t size_class) {
  if (size_class <= kSmallUnits) return size_class * kUnit;
  const uint32_t place = size_class - kSmallUnits - 1;
  return (size_t{place % 4} + 5) << (place / 4 + 1) << 4;
}
static_assert(kUnit == 1 << 4);

FreeBlock* First(uint64_t head) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a pointer and a count share the word
  return reinterpret_cast<FreeBlock*>((head & ((uint64_t{1} << kAddressBits) - 1)) * kUnit);
}

uint64_t HeadOf(const FreeBlock* first, uint64_t old) {
  const uint64_t count = (old >> kAddressBits) + 1;
  return count << kAddressBits | reinterpret_cast<uintptr_t>(first) / kUnit;
}

void Push(FreeList& list, std::byte* start) {
  auto* block = reinterpret_cast<FreeBlock*>(start);
  uint64_t head = list.head.load(std::memory_order_relaxed);
  do {
    block->next.store(First(head), std::memory_order_relaxed);
  } while (!list.head.compare_exchange_weak(head, HeadOf(block, head), std::memory_order_release,
                                            std::memory_order_relaxed));
}

std::byte* Pop(FreeList& list) {
  uint64_t head = list.head.load(std::memory_order_acquire);
  while (FreeBlock* first = First(head)) {
    FreeBlock* next = first->next.load(std::memory_order_relaxed);
    if (list.head.compare_exchange_weak(head, HeadOf(next, head), std::memory_order_acquire))
      return reinterpret_cast<std::byte*>(first);
  }
  return nullptr;
}

void* MapFresh(size_t bytes) {
  void* memory = MapOwn(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (memory == MAP_FAILED) return nullptr;
  if (reinterpret_cast<uintptr_t>(memory) - kOwnRangeStart >= kOwnRangeBytes)
    g_elsewhere.store(true, std::memory_order_relaxed);
  return memory;
}

std::byte* Cut(size_t bytes) {
  Chunk* chunk = g_chunk.load(std::memory_order_acquire);
  for (;;) {
    if (chunk != nullptr) {
      const size_t place = chunk->used.fetch_add(bytes, std::memory_order_relaxed);
      if (place + bytes <= kChunk) return reinterpret_cast<std::byte*>(chunk) + place;
    }
    auto* fresh = static_cast<Chunk*>(MapFresh(kChunk));
    if (fresh == nullptr) return nullptr;
    fresh->used.store(kUnit, std::memory_order_relaxed);
    if (g_chunk.compare_exchange_strong(chunk, fresh, std::memory_order_acq_rel))
      chunk = fresh;
    else
      UnmapOwn(fresh, kChunk);  // another thread was quicker
  }
}

void* Finish(std::byte* start, size_t offset, size_t alignment, uint32_t size_class) {
  auto user = reinterpret_cast<uintptr_t>(start) + offset;
  user = (user + alignment - 1) & ~(alignment - 1);
  auto* header = reinterpret_cast<Header*>(user) - 1;  // NOLINT(performance-no-int-to-ptr)
  header->size_class.store(uint64_t{kMagic} << 32 | size_class, std::memory_order_relaxed);
  header->start = start;
  return header + 1;
}

// The length of a mapping that goes back to the kernel is at its start.
void* Map(size_t need, size_t alignment) {
  const size_t bytes = need + kUnit;
  auto* start = static_cast<std::byte*>(MapFresh(bytes));
  if (start == nullptr) return nullptr;
  *reinterpret_cast<size_t*>(start) = bytes;
  return Finish(start, 2 * kUnit, alignment, kMappedClass);
}

const Header& HeaderOf(const void* memory) {
  return static_cast<const Header*>(memory)[-1];
}

}  // namespace

void* OwnAllocate(size_t bytes, size_t alignment) {
  if (alignment < kUnit) alignment = kUnit;
  if (bytes > std::numeric_limits<size_t>::max() / 4 || alignment > kChunk * kChunk) return nullptr;
  if (bytes == 0) bytes = 1;
  const size_t need = bytes + kUnit + (alignment > kUnit ? alignment : 0);
  if (need > kMostKept) return Map(need, alignment);
  const uint32_t size_class = ClassOf(need);
  std::byte* start = Pop(g_free[size_class]);
  if (start == nullptr) {
    const size_t whole = BytesOf(size_class);
    start = whole <= kMostCut ? Cut(whole) : static_cast<std::byte*>(MapFresh(whole));
  }
  return start != nullptr ? Finish(start, kUnit, alignment, size_class) : nullptr;
}

void OwnFree(void* memory) {
  if (memory == nullptr) return;
  const Header& header = HeaderOf(memory);
  const uint32_t size_class = header.SizeClass();
  std::byte* start = header.start;
  if (size_class == kMappedClass)
    UnmapOwn(start, *reinterpret_cast<size_t*>(start));
  else
    Push(g_free[size_class], start);
}

size_t OwnBytes(const void* memory) {
  const Header& header = HeaderOf(memory);
  const uint32_t size_class = header.SizeClass();
  const size_t whole =
      size_class == kMappedClass ? *reinterpret_cast<size_t*>(header.start) : BytesOf(size_class);
  return static_cast<size_t>(header.start + whole - static_cast<const std::byte*>(memory));
}

bool IsOwnMemory(const void* memory) {
  if (reinterpret_cast<uintptr_t>(memory) - kOwnRangeStart < kOwnRangeBytes) return true;
  return g_elsewhere.load(std::memory_order_relaxed) && HeaderOf(memory).IsOurs();
}

}  // namespace deja
