// IndexElements: what an index lists of payloads, one after the other.
//
// For writers that do not have all of it in memory. One thread.
#ifndef DEJA_FORMAT_WIRE_INDEX_ELEMENTS_H_
#define DEJA_FORMAT_WIRE_INDEX_ELEMENTS_H_

#include <cstddef>

#include "format/wire/messages.h"

namespace deja::format {

// One of the two; neither after the last. Lives until the next one is asked for.
struct IndexElement {
  const PayloadInfo* payload = nullptr;
  const PayloadPieces* pieces = nullptr;

  [[nodiscard]] bool is_end() const { return payload == nullptr && pieces == nullptr; }
  [[nodiscard]] const Hash128& hash() const {
    return payload != nullptr ? payload->hash : pieces->hash;
  }
};

class IndexElements {
 public:
  IndexElements() = default;
  virtual ~IndexElements() = default;
  IndexElements(const IndexElements&) = delete;
  IndexElements& operator=(const IndexElements&) = delete;

  [[nodiscard]] virtual size_t size() const = 0;  // at least as many as come
  virtual IndexElement Next() = 0;                // by hash
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_INDEX_ELEMENTS_H_
