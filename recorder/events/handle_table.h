// HandleTable: numbers for handles that are not communicators (streams, windows, registrations).
//
// Any thread. A null handle is number 0 on the wire and is never entered.
#ifndef DEJA_RECORDER_EVENTS_HANDLE_TABLE_H_
#define DEJA_RECORDER_EVENTS_HANDLE_TABLE_H_

#include <cstdint>

#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

// HandleDefined.kind
enum class HandleKind : uint32_t { kStream = 1, kWindow = 2, kRegistration = 3, kMemory = 4 };

class HandleTable {
 public:
  // Number + 1; `is_new` if it has just been given out.
  uint32_t Wire(HandleKind kind, uint64_t value, bool& is_new) {
    is_new = false;
    if (value == 0) return 0;
    Kind& k = kinds_[static_cast<uint32_t>(kind) - 1];
    uint32_t number = k.map.FindOrAdd(value, k.next, is_new);
    return number == KeyMap::kMissing ? 0 : number + 1;
  }
  // The handle is gone; its value may come again and is another one then.
  void Forget(HandleKind kind, uint64_t value) {
    if (value != 0) kinds_[static_cast<uint32_t>(kind) - 1].map.Erase(value);
  }

 private:
  struct Kind {
    KeyMap map;
    uint32_t next = 0;
  };
  Kind kinds_[4];
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_HANDLE_TABLE_H_
