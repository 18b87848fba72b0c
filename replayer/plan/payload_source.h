// PayloadSource: recorded bytes for the results that a replay serves, read ahead of the program.
//
// A background thread decodes the payloads of the next operations, in the order in which they were
// recorded, so that serving one costs a copy. What it has not got to yet is decoded on the asking
// thread, straight into the program's buffer.
//
// Owner: the engine; borrows reader and plan. Threads: any. Memory: at most kAheadBytes of decoded
// payloads, and one more; some bytes for each result.
#ifndef DEJA_REPLAYER_PLAN_PAYLOAD_SOURCE_H_
#define DEJA_REPLAYER_PLAN_PAYLOAD_SOURCE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

// Why a replay cannot go on after a result that the recording's window has moved on from.
inline constexpr char kNotInWindow[] =
    "the recording's window (--keep-steps or similar, or the disk budget) has moved past it; start "
    "at a checkpoint in the window (`deja info` lists its steps), or record with a larger window "
    "or --disk-budget";

class PayloadSource {
 public:
  PayloadSource(const format::RankReader& reader, const ReplayPlan& plan);

  // Starts reading ahead; while libraries are still being loaded, when the first output is asked
  // for. The guard must be held then, so that the thread is Deja's own.
  void Start();
  // Ends that, and its thread: what is asked for is read then.
  void StopReadingAhead();
  [[nodiscard]] bool reads_ahead() const { return reads_ahead_; }
  // The program goes on after the plan's checkpoint.
  void StartLate(const ReplayPlan& plan);
  // Puts output number `output` of call `call` into `out`; its size must be the payload's.
  Status ReadOutput(uint32_t call, uint32_t output, std::span<std::byte> out);
  // Puts a payload of exactly this size into `out`.
  Status ReadInto(const Hash128& hash, std::span<std::byte> out) const {
    return reader_.ReadPayload(hash, out);
  }
  // Any payload of exactly `bytes` bytes; nothing if it was not kept or has another size (sizes in
  // a trace are not to be trusted).
  [[nodiscard]] std::optional<std::vector<std::byte>> Read(const Hash128& hash,
                                                           uint64_t bytes) const;
  // Its size as the trace has it; nothing if it was not kept.
  [[nodiscard]] std::optional<uint64_t> SizeOf(const Hash128& hash) const {
    return hash.IsZero() ? std::nullopt : reader_.PayloadSize(hash);
  }
  // True if the window of the recording has moved on from what was kept in this segment.
  [[nodiscard]] bool Dropped(uint32_t segment) const { return reader_.Dropped(segment); }
  // CPU time that the background thread has used.
  [[nodiscard]] uint64_t CpuNs() const;

  static constexpr uint64_t kAheadBytes = 64 << 20;

 private:
  enum class State : uint8_t { kWaiting, kLoading, kReady, kTaken };
  // A result that has a payload.
  struct Item {
    uint32_t call = 0;
    uint16_t output = 0;
    State state = State::kWaiting;
  };
  struct Loaded {
    std::unique_ptr<std::byte[]> bytes;  // null: they could not be read
    uint64_t size = 0;
  };

  void Run();
  // The next item to load, its hash and size, or items_.size(); holds mutex_.
  [[nodiscard]] size_t NextToLoad(Hash128& hash, uint64_t& size);
  void Load(std::unique_lock<std::mutex>& lock, size_t index, const Hash128& hash, uint64_t size);
  [[nodiscard]] Hash128 HashOf(const Item& item) const;
  // What was read ahead of an item, if anything; it is not any more. Holds mutex_.
  Loaded Take(size_t index);

  const format::RankReader& reader_;
  const ReplayPlan& plan_;
  std::vector<Item> items_;
  std::vector<uint32_t> first_item_;                 // by call; kNone: it has none
  std::unordered_map<size_t, Loaded> loaded_items_;  // in state kReady
  mutable std::mutex mutex_;
  std::condition_variable wanted_;  // the background thread waits here
  std::condition_variable loaded_;  // a program's thread waits here
  size_t frontier_ = 0;             // items before it are not read ahead any more
  uint64_t ahead_bytes_ = 0;
  bool stopping_ = false;
  std::atomic<bool> reads_ahead_ = false;  // its thread runs, or has not been waited for
  std::atomic<bool> starts_later_ = false;
  std::thread thread_;
  int clock_ = -1;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_PAYLOAD_SOURCE_H_
