// Texts with their length in front, as pickle and MessagePack write them: a name, and the text or
// bytes that follow it.
//
// Pure functions over the caller's bytes; no allocation, any thread. Linear.
#ifndef DEJA_COMMON_SECRETS_COUNTED_TEXTS_H_
#define DEJA_COMMON_SECRETS_COUNTED_TEXTS_H_

#include <cstddef>
#include <string_view>

namespace deja {

struct CountedPair {
  std::string_view name;  // letters, digits and _-. ; empty: there is none
  size_t begin = 0;       // of the value, in the bytes
  size_t end = 0;
};

// The first pair whose name begins at or after `from`. The value may be the next pair's name.
CountedPair FindCountedPair(std::string_view bytes, size_t from);

}  // namespace deja

#endif  // DEJA_COMMON_SECRETS_COUNTED_TEXTS_H_
