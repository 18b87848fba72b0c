// Stillness: whether anything moves in the whole rank, for a thread that waits for another process.
//
// Something moves while any process of the replay uses processor time, or this one makes calls that
// reach the engine. On the waiting thread's stack; not shared.
#ifndef DEJA_REPLAYER_STILLNESS_H_
#define DEJA_REPLAYER_STILLNESS_H_

#include <cstdint>
#include <ctime>
#include <string>

namespace deja::replayer {

class Session;

// How long a wait sleeps before it looks again.
inline constexpr uint64_t kMeetingTickNs = 20'000'000;

// CLOCK_MONOTONIC, which is not told to the program.
uint64_t MonotonicNs();
timespec SpanOf(uint64_t ns);

// Another thread of this process runs, or would if it were let.
bool IsAnotherThreadBusy();

class Stillness {
 public:
  // `session`: null in a process without a recording. `scratch`: the replay's scratch folder.
  Stillness(const std::string& scratch, const Session* session);
  explicit Stillness(const Session& session);

  // True once for each 200 ms: then somebody may have ended. The others below are asked then.
  bool IsTimeToLook();
  // How long nothing has moved, as it was at the last look.
  [[nodiscard]] uint64_t ns() const { return looked_ > moved_ ? looked_ - moved_ : 0; }
  // True once, when it is time to say so.
  bool IsTimeToTell();
  [[nodiscard]] bool IsTimeToGiveUp(uint64_t patience_ns = kGiveUpNs) const {
    return ns() >= patience_ns;
  }

  static constexpr uint64_t kTellNs = 10'000'000'000;    // nothing moves for so long: say so
  static constexpr uint64_t kGiveUpNs = 60'000'000'000;  // or so long: the order gives way

 private:
  const std::string& scratch_;
  const Session* session_;
  uint64_t begun_;
  uint64_t moved_;
  uint64_t looked_ = 0;
  uint64_t used_ = 0;
  uint64_t activity_ = 0;
  bool told_ = false;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_STILLNESS_H_
