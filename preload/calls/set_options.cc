#include "preload/calls/set_options.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace deja::preload {
namespace {

uint64_t OptionOf(int level, int name) {
  return static_cast<uint64_t>(level) << 32 | static_cast<uint32_t>(name);
}

}  // namespace

void SetOptions::Set(int level, int name, const void* value, socklen_t size) {
  if (value == nullptr) return;
  const uint64_t option = OptionOf(level, name);
  unsigned char question[sizeof option + 16];
  const size_t length = std::min<size_t>(size, sizeof question - sizeof option);
  std::memcpy(question, &option, sizeof option);
  std::memcpy(question + sizeof option, value, length);
  const uint64_t key = XXH3_64bits(question, sizeof option + length);
  const Hold hold(lock_);
  const auto end = set_.begin() + count_;
  const auto it =
      std::find_if(set_.begin(), end, [&](const One& one) { return one.option == option; });
  if (it != end)
    it->key = key;
  else if (count_ < set_.size())
    set_[count_++] = {option, key};
}

uint64_t SetOptions::KeyOf(int level, int name) {
  const uint64_t option = OptionOf(level, name);
  const Hold hold(lock_);
  for (size_t i = 0; i < count_; ++i)
    if (set_[i].option == option) return set_[i].key;
  return option;
}

}  // namespace deja::preload
