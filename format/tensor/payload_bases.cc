#include "format/tensor/payload_bases.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "format/tensor/payload_series.h"

namespace deja::format {
namespace {

// Limits for series and places, with bytes or without: names that a program makes up again and
// again must not fill the memory.
constexpr size_t kMostEntries = 1 << 16;
// A series that was not seen in this many steps makes room for others.
constexpr uint64_t kStaleSteps = 2;
constexpr uint32_t kMostMisses = 8;  // then it is tried every 2^8 times

}  // namespace

uint64_t PayloadBases::KeyOf(const Place& place) {
  const uint64_t mixed = (place.offset >> 6) * 0x9e3779b97f4a7c15 ^ place.size * 0xc2b2ae3d27d4eb4f;
  return mixed << 24 ^ mixed >> 40 ^ place.series;
}

PayloadBases::Entry* PayloadBases::EntryOf(const Place& place) {
  const auto found = entries_.find(KeyOf(place));
  if (found == entries_.end()) return nullptr;
  const Place& known = found->second.place;
  const bool same =
      known.series == place.series && known.offset == place.offset && known.size == place.size;
  return same ? &found->second : nullptr;
}

const PayloadBases::Base* PayloadBases::Find(const Place& place) {
  if (memory_ == 0 || place.series == 0) return nullptr;
  Entry* entry = EntryOf(place);
  if (entry == nullptr || entry->copy == nullptr) return nullptr;
  return entry->base.differences < kMaxDifferences ? &entry->base : nullptr;
}

void PayloadBases::Forget(Entry& entry) {
  if (entry.copy != nullptr) used_ -= entry.place.size;
  entry.copy.reset();
}

bool PayloadBases::IsStale(const Place& place, uint64_t step) const {
  if ((place.series & kOfCheckpoints) != 0) return place.step < checkpoint_before_;
  return place.step + kStaleSteps < step;
}

bool PayloadBases::MakeRoom(uint64_t size, uint64_t step) {
  if (size > memory_) return false;
  if (used_ + size <= memory_) return true;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool stale = IsStale(entry->second.place, step);
    if (stale) Forget(entry->second);
    entry = stale ? entries_.erase(entry) : std::next(entry);
  }
  return used_ + size <= memory_;
}

void PayloadBases::Remember(const Place& place, const Base& base, Tried tried) {
  if (memory_ == 0 || place.series == 0 || place.size > memory_) return;
  if ((place.series & kOfCheckpoints) != 0 && place.step > checkpoint_step_)
    checkpoint_before_ = std::exchange(checkpoint_step_, place.step);
  Entry* entry = EntryOf(place);
  if (entry == nullptr) {
    if (entries_.size() >= kMostEntries) Clear();
    entry = &entries_[KeyOf(place)];
    Forget(*entry);  // of another place with the same key
    *entry = Entry{};
    entry->place = place;
  }
  entry->place.step = place.step;
  if (tried == Tried::kSaved) entry->misses = 0;
  if (tried == Tried::kSavedNothing) {
    entry->misses = std::min(entry->misses + 1, kMostMisses);
    entry->skip = (1u << entry->misses) - 2;
  } else if (entry->skip != 0) {
    --entry->skip;
  }
  if (entry->skip != 0) return Forget(*entry);
  if (entry->copy == nullptr) {
    if (!MakeRoom(place.size, place.step)) return;
    entry->copy.reset(new (std::nothrow) std::byte[place.size]);
    if (entry->copy == nullptr) return;
    used_ += place.size;
  }
  std::copy(base.bytes.begin(), base.bytes.end(), entry->copy.get());
  entry->base = base;
  entry->base.bytes = {entry->copy.get(), static_cast<size_t>(place.size)};
}

void PayloadBases::Clear() {
  entries_.clear();
  used_ = 0;
}

}  // namespace deja::format
