// Parts: what rooms keep of their own for a session, or for a thread of it. Core knows which rooms
// there are, and nothing of what they keep: a part is a type with `kPart`, and is asked for by
// type.
#ifndef DEJA_REPLAYER_CORE_PARTS_H_
#define DEJA_REPLAYER_CORE_PARTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace deja::replayer {

// Parts of the session. The composition root (replayer/assembly/) makes them; null: there is none.
enum class SessionPart : uint8_t { kComms, kComputed, kMpi, kClocks, kNames, kCollections, kCount };

// Parts of a thread. Each is made when its room first asks for it.
enum class ThreadPart : uint8_t { kNccl, kMpi, kClocks, kLocks, kCount };

template <typename Which>
class Parts {
 public:
  template <typename Part>
  [[nodiscard]] Part* Find() const {
    return static_cast<Part*>(parts_[static_cast<size_t>(Part::kPart)]);
  }
  // `part` stays for good.
  template <typename Part>
  void Set(Part* part) {
    parts_[static_cast<size_t>(Part::kPart)] = part;
  }

 private:
  std::array<void*, static_cast<size_t>(Which::kCount)> parts_{};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_PARTS_H_
