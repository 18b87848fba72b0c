#include "recorder/mpi/mpi_layout.h"

#include <cstring>

#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

using preload::MpiSegment;

namespace {

// Memory for one look at a type.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : bytes_(bytes), at_(static_cast<uint8_t*>(MapZeroed(bytes))) {}
  ~Scratch() {
    if (at_ != nullptr) munmap(at_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] uint8_t* get() const { return at_; }

 private:
  size_t bytes_;
  uint8_t* at_;
};

// Packs an element three times, its bytes being the low, middle and high parts of their positions.
bool Probe(uint64_t type, int64_t lb, uint64_t span, MpiLayout& layout) {
  auto* pack =
      preload::RealMpiAs<int(const void*, int, uint64_t, void*, int, int*, uint64_t)>("PMPI_Pack");
  const uint64_t comm = preload::MpiCommSelf();
  if (pack == nullptr || comm == 0) return false;
  Scratch element(span);
  Scratch packed(layout.size);
  Scratch positions(layout.size * sizeof(uint32_t));
  if (element.get() == nullptr || packed.get() == nullptr || positions.get() == nullptr)
    return false;
  auto* position = reinterpret_cast<uint32_t*>(positions.get());
  for (unsigned shift = 0; shift < 24; shift += 8) {
    for (uint64_t i = 0; i < span; ++i) element.get()[i] = static_cast<uint8_t>(i >> shift);
    int at = 0;
    const auto* base = reinterpret_cast<const void*>(reinterpret_cast<uint64_t>(element.get()) -
                                                     static_cast<uint64_t>(lb));
    if (pack(base, 1, type, packed.get(), static_cast<int>(layout.size), &at, comm) != 0 ||
        static_cast<uint64_t>(at) != layout.size)
      return false;
    for (uint64_t i = 0; i < layout.size; ++i)
      position[i] |= static_cast<uint32_t>(packed.get()[i]) << shift;
  }
  for (uint64_t i = 0; i < layout.size; ++i) {
    const int64_t offset = lb + position[i];
    if (layout.count > 0) {
      MpiSegment& last = layout.segments[layout.count - 1];
      if (last.offset + static_cast<int64_t>(last.bytes) == offset) {
        ++last.bytes;
        continue;
      }
    }
    if (layout.count == MpiLayout::kMaxSegments) return false;
    layout.segments[layout.count++] = {offset, 1};
  }
  return true;
}

}  // namespace

const MpiSegment* MpiLayout::Keep() const {
  auto* copy = static_cast<MpiSegment*>(MapZeroed(count * sizeof(MpiSegment)));
  if (copy != nullptr) std::memcpy(copy, segments, count * sizeof(MpiSegment));
  return copy;
}

bool FindLayout(uint64_t type, MpiLayout& layout) {
  auto* size_of = preload::RealMpiAs<int(uint64_t, int*)>("PMPI_Type_size");
  auto* extent_of = preload::RealMpiAs<int(uint64_t, int64_t*, int64_t*)>("PMPI_Type_get_extent");
  auto* true_extent_of =
      preload::RealMpiAs<int(uint64_t, int64_t*, int64_t*)>("PMPI_Type_get_true_extent");
  if (size_of == nullptr || extent_of == nullptr || true_extent_of == nullptr) return false;
  int size = 0;
  int64_t lb = 0;
  int64_t span = 0;
  if (size_of(type, &size) != 0 || extent_of(type, &lb, &layout.extent) != 0 ||
      true_extent_of(type, &lb, &span) != 0 || size < 0 || span < 0)
    return false;
  layout.size = static_cast<uint64_t>(size);
  layout.count = 0;
  if (size == span) {
    if (size > 0) layout.segments[layout.count++] = {lb, layout.size};
    layout.known = true;
    return true;
  }
  const auto bytes = static_cast<uint64_t>(span);
  layout.known = bytes <= MpiLayout::kMaxSpan && Probe(type, lb, bytes, layout);
  return true;
}

}  // namespace deja::recorder
