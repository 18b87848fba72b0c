// FamilyOrder: in which order the threads of one process answered other processes of the rank, over
// sockets between them.
//
// A server with a thread for each client (multiprocessing's managers) does its work under locks of
// its own. What its data is afterwards depends on which request came first. Between what a thread
// receives and its next answer lies what it did. So a thread that has received something waits
// until other threads have given all answers that came before its own. They do their work one after
// the other, in the order in which it was done. Work that waits for other work (a barrier) is in no
// such order: where nothing moves, it gives way.
//
// Pure logic over the plan. Not thread-safe: the owner serialises.
#ifndef DEJA_REPLAYER_SOCKETS_FAMILY_ORDER_H_
#define DEJA_REPLAYER_SOCKETS_FAMILY_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class FamilyOrder {
 public:
  // `is_family(c)`: the other end of connection `c` is a process of the rank, too.
  FamilyOrder(const ReplayPlan& plan, const std::function<bool(uint32_t)>& is_family);

  // When the answer was given, by the recording's clock, to the `received`-th byte of connection
  // `c`; or, if none was, when that byte was received. 0: the recording does not have it.
  [[nodiscard]] uint64_t AnswerTo(uint32_t c, uint64_t received) const;
  // What became of the recorded receipt / sending after `bytes` bytes of connection `c`, if it
  // moved none: an errno, or 0 for the end. Nothing: it moved some.
  [[nodiscard]] std::optional<int> FailureAt(uint32_t c, format::TransferKind kind,
                                             uint64_t bytes) const;
  // The other end has never taken the connection, and ended.
  [[nodiscard]] bool IsNeverAnswered(uint32_t c) const;
  // The connection ended before anything came: it was taken, or its taker ended while it took it.
  [[nodiscard]] bool EndsUnanswered(uint32_t c) const;
  // `bytes` bytes have been sent on connection `c`.
  void Sent(uint32_t c, uint64_t bytes);
  // All answers before that time were given, but those of `thread` (position in the plan).
  [[nodiscard]] bool MayGoOn(uint32_t thread, uint64_t before);
  // They will not be.
  void GiveWay(uint64_t before);
  // `bytes` bytes have been received on connection `c`.
  void Received(uint32_t c, uint64_t bytes);
  // All that the recording has was received.
  [[nodiscard]] bool IsAllReceived() const { return to_receive_ == 0; }

 private:
  struct Answer {
    uint64_t time_ns = 0;
    uint32_t thread = 0;
    uint32_t connection = 0;
    uint64_t end = 0;  // of its bytes on the connection
    bool given = false;
  };
  struct Failure {
    format::TransferKind kind{};
    uint64_t at = 0;
    int error = 0;
  };
  struct Receipt {
    uint64_t end = 0;
    uint64_t answer_ns = 0;
  };

  std::vector<std::vector<Receipt>> receipts_;      // by connection
  std::vector<std::vector<Failure>> failures_;      // by connection
  std::vector<std::vector<size_t>> by_connection_;  // positions in `answers_`
  std::vector<size_t> next_;                        // by connection, in the list above
  std::vector<Answer> answers_;                     // by time
  size_t first_left_ = 0;                           // those before it are given
  std::vector<uint64_t> received_;                  // bytes, by connection
  size_t to_receive_ = 0;                           // connections of which something is left
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_FAMILY_ORDER_H_
