// Stops: where the program is, for gdb and for reports, and where it stops. It stops in gdb, or
// where the user wanted the replay to end or to be held.
//
// Belongs to the session. Any thread, within the guard; one thread at a time stops in gdb.
#ifndef DEJA_REPLAYER_CORE_STOPS_H_
#define DEJA_REPLAYER_CORE_STOPS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "format/wire/messages.h"
#include "replayer/core/session_options.h"
#include "replayer/core/thread_state.h"
#include "replayer/plan/payload_source.h"
#include "replayer/plan/replay_plan.h"
#include "replayer/report/position.h"

namespace deja::replayer {

// Copies `text`, cut to what there is room for, and a final zero.
void CopyText(char* out, size_t size, std::string_view text);

class Stops {
 public:
  // All of them outlive it.
  Stops(const SessionOptions& options, const ReplayPlan& plan, PayloadSource& payloads)
      : options_(options), plan_(plan), payloads_(payloads) {}

  // Tells gdb how the recording ends.
  void ShowEnd();

  // The thread is in a call.
  static void Enter(ThreadState& thread, const char* api, uint32_t comm, uint64_t comm_seq,
                    uint32_t stack);

  // What keeps images of the process at places (replayer/forks/forks.h): it may return once more,
  // in an image that goes on. Before the program begins.
  using Keeper = void (*)(deja_replay_thread& shown, uint64_t place, bool wanted, void* context);
  void SetKeeper(Keeper keeper, void* context) {
    keeper_ = keeper;
    keeper_context_ = context;
  }
  // The thread has reached a place (position.h). True: gdb wants to stop there. `stops`: it will,
  // for another reason. Returns once more in an image of the process that goes on.
  bool Arrive(ThreadState& thread, uint64_t place, bool stops);

  // Waits, at the place where the user wanted it, until the replay is let go on.
  void Hold() const;

  // Stops in gdb. `tensors` are shown; recorded bytes are fetched here.
  struct ShownTensor {
    const char* name;
    uint32_t role;
    const format::Tensor* recorded;
    const void* live;
    uint32_t comparison;
  };
  void Stop(ThreadState& thread, DejaStopReason reason, std::string_view message,
            std::span<const ShownTensor> tensors, uint32_t recorded_stack);

  // Tells gdb what the program has registered so far, if gdb is there.
  static void ShowRegistered();

  // Remembers what the program showed under a name, for `deja tensor NAME`.
  void RememberSnapshot(const RecordedSnapshot& recorded, const void* live, uint32_t comparison);

 private:
  struct SnapshotView {
    const RecordedSnapshot* recorded;
    const void* live;
    uint32_t comparison;
  };

  void FillFrames(deja_replay_frame* out, uint32_t& count,
                  std::span<const format::StackFrame> frames) const;

  const SessionOptions& options_;
  const ReplayPlan& plan_;
  PayloadSource& payloads_;
  Keeper keeper_ = nullptr;
  void* keeper_context_ = nullptr;
  std::mutex stop_mutex_;
  std::mutex snapshot_mutex_;
  std::map<std::string, SnapshotView> snapshot_views_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_STOPS_H_
