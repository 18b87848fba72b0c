// Forks: copies of the process, made by fork on the way, to which gdb goes back.
//
// They are made only under gdb, and only where nothing is lost. The program then has no children,
// no connections, no memory that others write to, and its other threads wait (bystanders.h). An
// image sleeps, in the place of the run at which it was made, until gdb attaches to it and writes
// image_wanted (position.h). Then it leaves another image in its place, and goes on as the program.
// The files that it had open are opened once more. Its other threads are made again. gdb has put
// the replay's folder back to what it was (fork_folder.h).
//
// At most kDejaMaxImages, closer together near the present; their memory is the kernel's
// copy-on-write. They are children of the program's parent, which is gdb, and die with it. gdb does
// not hear of the fork; what its breakpoints have put into the copied code it takes out itself.
//
// Main thread only; the guard must be held.
#ifndef DEJA_REPLAYER_FORKS_FORKS_H_
#define DEJA_REPLAYER_FORKS_FORKS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "replayer/forks/fork_files.h"
#include "replayer/forks/reason.h"
#include "replayer/plan/payload_source.h"
#include "replayer/report/position.h"

namespace deja::replayer {

class Forks {
 public:
  // Called in an image. Forked: when it is made, since it is no child of the program's. Renumbered:
  // when it goes on, since the process and its threads have other numbers. These wait: no lock may
  // be taken, and nothing allocated. Woken: when they go on, too.
  using Forked = void (*)();
  using Woken = void (*)(void* context);
  struct Listeners {
    Forked forked = nullptr;
    Woken renumbered = nullptr;
    Woken woken = nullptr;
    void* context = nullptr;
  };

  // Before the program begins.
  Forks(std::string scratch, PayloadSource& payloads)
      : scratch_(std::move(scratch)), payloads_(payloads) {
    files_.NoteInherited();
  }
  void SetListeners(const Listeners& listeners) { listeners_ = listeners; }

  // The thread whose position is `shown` has reached a place. Makes an image if it is time for one,
  // or `wanted`. Returns in the process and, should gdb want it, in the image.
  void Keep(deja_replay_thread& shown, uint64_t place, uint64_t last_seq, bool wanted);

 private:
  struct Made {
    pid_t image = -1;
    bool has_slept = false;  // this is an image that goes on; `image` is the one that it has left
  };

  [[nodiscard]] bool IsDue(uint64_t place, bool wanted) const;
  // Empty: an image can be made, as far as other threads do not matter.
  Reason Prepare();
  // While the other threads are stopped. In an image it returns when they go on there.
  Reason Make(deja_replay_thread& shown, uint64_t place, uint64_t last_seq, Made& made);
  // As fork; gdb, whose breakpoints are in the code, hears nothing of it.
  pid_t Fork() const;
  void Remember(pid_t pid);
  void GiveOneUp() const;
  // Returns when gdb wants this image: the number of the one that is left in its place.
  pid_t Sleep(pid_t parent);
  void GoOn();

  const std::string scratch_;
  PayloadSource& payloads_;
  Listeners listeners_;
  ForkFiles files_;
  uint64_t made_ = 0;
  uint64_t last_operation_ = 0;
  uint64_t last_ns_ = 0;
  uint64_t cost_ns_ = 0;  // of the last one
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_FORKS_H_
