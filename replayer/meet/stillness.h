// Stillness: for how long nothing has moved in a process, or its rank, by the watch of one thread
// that waits.
//
// It is the sum of the time between looks, each of which counts only a little. A process that a
// debugger has stopped, or that a loaded machine leaves waiting, does not count as hanging.
//
// Belongs to one thread. No allocation but for files of the scratch folder. The guard need not be
// held.
#ifndef DEJA_REPLAYER_MEET_STILLNESS_H_
#define DEJA_REPLAYER_MEET_STILLNESS_H_

#include <cstdint>
#include <ctime>
#include <string>

namespace deja::replayer {

class Session;

// CLOCK_MONOTONIC as it is.
uint64_t MonotonicNs();
timespec SpanOf(uint64_t ns);

class Stillness {
 public:
  static constexpr uint64_t kMs = 1'000'000;
  static constexpr uint64_t kTickNs = 20 * kMs;
  static constexpr uint64_t kLookNs = 200 * kMs;       // then another process may have ended
  static constexpr uint64_t kLeftNs = 1'000 * kMs;     // or so long, and no process is to come
  static constexpr uint64_t kTellNs = 10'000 * kMs;    // nothing moves for so long: say so
  static constexpr uint64_t kGiveUpNs = 60'000 * kMs;  // or so long: the order gives way

  // `session`: null in a process without a recording.
  Stillness(const std::string& scratch, const Session* session);
  explicit Stillness(const Session& session);

  // True once for each `kLookNs`.
  bool IsTimeToLook();
  // For tests: a second counts as `haste` seconds, 0 as 1. In all of the process.
  static void SetHaste(uint64_t haste);

  // Something moves that cannot be seen from here.
  void SetMoved() { ns_ = 0; }
  // 0 in a debugger: what it has stopped may be what this thread waits for.
  [[nodiscard]] uint64_t ns() const { return in_debugger_ ? 0 : ns_; }
  // In a debugger, too: for waits that no recorded process will end.
  [[nodiscard]] uint64_t ns_of_the_watch() const { return ns_; }
  // True once, when it is time to say so.
  bool IsTimeToTell();
  [[nodiscard]] bool IsTimeToGiveUp(uint64_t patience = kGiveUpNs) const {
    return ns() >= patience;
  }

 private:
  const std::string& scratch_;
  const Session* session_;
  const bool in_debugger_;
  uint64_t looked_;
  uint64_t ns_ = 0;
  uint64_t used_ = 0;
  uint64_t activity_ = 0;
  bool told_ = false;
};

// The pauses of a wait. Not short after a while: what several waits take together looks like
// something that moves.
class Pauses {
 public:
  explicit Pauses(uint64_t first_ns = Stillness::kMs) : ns_(first_ns) {}
  void Next();

 private:
  uint64_t ns_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_STILLNESS_H_
