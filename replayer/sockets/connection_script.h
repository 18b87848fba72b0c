// ConnectionScript: what the recorded connections transferred, as a replay goes through it.
//
// What a connection received is a list of chunks, one for each recorded call. A chunk is *due* when
//   1. the program has sent on this connection what the recorded run had sent before it, and
//   2. the recorded thread's transfers that came before it have been made, on whatever connection.
// The first rule keeps servers and clients from running ahead of each other. The second one makes a
// program that waits for several descriptors see them become ready in the recorded order. It is
// given up (Relax) where the replay waits and nothing else happens, since the order may have been a
// matter of time; so is the first (Force), with a word about it, when the program sends less than
// it did and waits.
//
// What is sent is compared by the hashes of the recorded calls, however it is cut now.
//
// Pure logic over the plan; no descriptors. Not thread-safe: the owner serialises.
#ifndef DEJA_REPLAYER_SOCKETS_CONNECTION_SCRIPT_H_
#define DEJA_REPLAYER_SOCKETS_CONNECTION_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replayer/plan/replay_plan.h"
#include "replayer/sockets/fifos.h"

namespace deja::replayer {

class ConnectionScript {
 public:
  struct Chunk {
    const PlannedTransfer* transfer = nullptr;  // null: a connection that came in
    uint32_t accepted = kNone;                  // position of that one
    uint64_t peeked = 0;                        // how far the program had looked before it took it
    uint64_t sent_before = 0;
    uint64_t time_ns = 0;
    uint32_t thread = 0;
    uint32_t step = 0;  // position among its thread's
    // Nothing more comes in.
    [[nodiscard]] bool IsEnd() const {
      return transfer != nullptr && transfer->result == 0 && transfer->error == 0;
    }
  };
  struct Sent {
    int64_t result = 0;
    int error = 0;
    std::string difference;  // empty: as recorded so far, or already reported
  };

  // Whether the process that a text of WriteLineage begins with is of this replay, and says again
  // what it said after that recorded time.
  using IsFamilyPeer = std::function<bool(const std::string& lineage, uint64_t time_ns)>;
  ConnectionScript(const ReplayPlan& plan, const IsFamilyPeer& is_family_peer, const Fifos& fifos);
  ~ConnectionScript();

  // Position of the recorded connection of this name, or kNone.
  [[nodiscard]] uint32_t Find(std::string_view name) const;
  [[nodiscard]] const PlannedConnection& Info(uint32_t c) const;
  [[nodiscard]] bool IsStream(uint32_t c) const;
  // The recorded run sent something there.
  [[nodiscard]] bool Sends(uint32_t c) const { return !lines_[c].out.empty(); }
  // The recorded process accepted connections at this listener.
  [[nodiscard]] bool Accepts(uint32_t c) const { return !lines_[c].in.empty(); }
  // Both ends are processes of the rank: they say again what they said, and nothing is compared.
  [[nodiscard]] bool IsFamily(uint32_t c) const { return lines_[c].family; }
  // How many of its recorded receipts and sendings have been made.
  [[nodiscard]] size_t MadeOf(uint32_t c) const { return lines_[c].next_in + lines_[c].next_out; }

  // The next chunk of `c`, due or not; null: there is none.
  [[nodiscard]] const Chunk* Next(uint32_t c) const;
  // The one `ahead` chunks after it, due or not; null: there is none.
  [[nodiscard]] const Chunk* Ahead(uint32_t c, size_t ahead) const;
  [[nodiscard]] bool IsDue(uint32_t c) const;
  // Nothing but ends is left.
  [[nodiscard]] bool OnlyEndsLeft(uint32_t c) const;
  // The recorded run read to the end.
  [[nodiscard]] bool WasEnded(uint32_t c) const;
  // Bytes of the next chunk that have been handed out.
  [[nodiscard]] size_t Taken(uint32_t c) const { return lines_[c].taken; }
  // `bytes` more of the next chunk have been handed out; `whole`: and that is all of it.
  void Take(uint32_t c, size_t bytes, bool whole);

  // The program sends. `may_cut`: less than all may be sent, as the recorded call did.
  Sent Send(uint32_t c, std::span<const std::byte> bytes, bool may_cut);
  // The pending error that the recorded run learned of next; 0: none.
  int TakeState(uint32_t c);
  // The program has closed it. A difference, or empty.
  std::string Close(uint32_t c);

  // Connections at which something has become due since the last call.
  std::vector<uint32_t> TakeReleased();
  // Nothing happens: makes the chunk due that the recorded run received first, of those for which
  // enough has been sent. False: there is none.
  bool Relax();
  // The program waits for `c`, and will not send more: a difference, or empty.
  std::string Force(uint32_t c);

  // A replay from a checkpoint goes on after it: all connections do.
  void StartLate();
  // Connection `c` was opened before the checkpoint, and is used after it.
  [[nodiscard]] bool CrossesStart(uint32_t c) const {
    const Line& line = lines_[c];
    return line.start_in < line.in.size() || line.start_out < line.out.size();
  }

  // Chunks that have not been received.
  [[nodiscard]] uint64_t left() const { return left_; }

 private:
  struct Out {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t hash = 0;
    int error = 0;
    uint32_t thread = 0;
    uint32_t step = 0;
  };
  struct RunningHash;
  struct Line {
    Line();
    ~Line();
    Line(Line&&) noexcept;
    std::vector<Chunk> in;
    std::vector<Out> out;
    std::vector<int> states;
    size_t next_in = 0;
    size_t taken = 0;
    size_t next_out = 0;
    size_t next_state = 0;
    uint64_t sent = 0;
    size_t start_in = 0;  // before the checkpoint
    size_t start_out = 0;
    size_t start_state = 0;
    size_t relaxed = 0;  // chunks before this need not wait for their turn
    size_t forced = 0;   // nor for what is to be sent
    bool family = false;
    bool closed = false;
    bool differs = false;
    bool cut_open = false;  // `hash` has the beginning of out[next_out]
    std::unique_ptr<RunningHash> hash;
  };
  struct Step {
    uint32_t connection = 0;
    bool in = false;
    uint32_t index = 0;
  };
  struct ThreadSteps {
    std::vector<Step> steps;
    size_t made = 0;
    size_t start_made = 0;  // before the checkpoint
  };

  [[nodiscard]] bool IsMade(const Step& step) const;
  [[nodiscard]] bool HasSentEnough(const Line& line) const;
  void Advance(uint32_t c);
  std::string Compare(uint32_t c, std::span<const std::byte> bytes);
  std::string Differs(uint32_t c, std::string what);

  const ReplayPlan& plan_;
  std::vector<Line> lines_;
  std::vector<ThreadSteps> threads_;
  std::unordered_map<std::string_view, uint32_t> by_name_;
  std::vector<uint32_t> released_;
  uint64_t left_ = 0;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_CONNECTION_SCRIPT_H_
