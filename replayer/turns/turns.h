// Turns: a replayed rank's side of waiting for others, and of sharing devices whose memory the
// ranks do not fit into together (common/os/turn_area.h). cli/replay/fold/turn_scheduler.h decides.
//
// A rank that waits for others uses no device meanwhile: its memory there may be swapped out, and
// is back before it goes on. What fails for lack of memory is tried again when others have made
// room. One for the process that is the rank, none in its children. Any thread, under the guard.
#ifndef DEJA_REPLAYER_TURNS_TURNS_H_
#define DEJA_REPLAYER_TURNS_TURNS_H_

#include <sys/types.h>

#include <cstdint>
#include <mutex>

#include "common/os/turn_area.h"

namespace deja::replayer {

class Turns {
 public:
  // From DEJA_TURNS. Before the fence is up: the file is not where the program may write. Nothing
  // happens where there is none to share with.
  static Status Open(const char* place);
  // Null: the rank shares no devices.
  static Turns* Get();
  // Null: the rank does not wait for others either.
  static Turns* OfRank();

  // In its scope the calling thread makes no call of CUDA.
  class Rest {
   public:
    Rest();
    ~Rest();
    Rest(const Rest&) = delete;
    Rest& operator=(const Rest&) = delete;

   private:
    Turns* const turns_;
  };

  static constexpr int kOwnDevice = -1;  // the first that it has used so far
  struct Shortage {
    uint64_t bytes = 0;  // that were asked for
    int device = kOwnDevice;
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
  };
  // Waits until others have made room. True: it may be there now. False: there is none to be had,
  // or the rank has no device.
  bool MakeRoom(const Shortage& shortage);

  // The rank waits for others: for its turn, or for ranks of which some may still get on.
  [[nodiscard]] bool WaitsForOthers() const;

  // The rank uses the device, whose number CUDA_VISIBLE_DEVICES may change.
  void Uses(int device);
  // Bytes that the programs of other ranks have allocated and that lie on their devices, of those
  // ranks that use `device`, too.
  [[nodiscard]] uint64_t HeldByOthers(int device) const;
  void Holds(int64_t more) { cell_->held.fetch_add(static_cast<uint64_t>(more)); }

 private:
  Turns(const TurnArea& area, uint32_t index);
  // Waits until the rank's memory is on its devices.
  void ComeIn();

  TurnArea area_;
  TurnCell* cell_;
  pid_t pid_;
  std::mutex asking_;  // one allocation of the process at a time
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_TURNS_TURNS_H_
