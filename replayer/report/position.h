// Where the replay is and where it shall stop, as gdb reads and writes it.
//
// deja_replay_state is plain memory with a fixed layout (checked below and by
// gdb/deja_gdb/state.py). gdb never calls a function in the program. It writes the stop conditions
// here. The library itself tests them and calls deja_replay_stop, on which gdb has its breakpoint.
// The symbols are exported, so all this works in programs without debug information.
//
// The library fills in tensors and frames only while `watched` is set. One thread at a time stops;
// the others' positions stay as they are.
//
// A place is a point that a thread reaches in every replay of a recording, wherever that starts.
// gdb finds its way back by places. There are two kinds:
// - an operation: twice the number of its event on the thread
// - the beginning of a step: twice the step, and one
#ifndef DEJA_REPLAYER_REPORT_POSITION_H_
#define DEJA_REPLAYER_REPORT_POSITION_H_

#include <cstddef>
#include <cstdint>

extern "C" {

enum : uint32_t { kDejaStateVersion = 4 };
inline constexpr uint64_t kDejaStateMagic = 0x315453504a4544ull;

inline constexpr uint32_t kDejaRecentPlaces = 8;
inline constexpr uint32_t kDejaMaxImages = 24;
inline constexpr uint32_t kDejaMaxRegistered = 64;

enum DejaStopReason : uint32_t {
  kDejaStopNone = 0,
  kDejaStopReady = 1,       // the library is set up, the program has not begun
  kDejaStopOperation = 2,   // `next`, `until seq`
  kDejaStopStep = 3,        // `until step`
  kDejaStopNan = 4,         // `until nan`
  kDejaStopDivergence = 5,  // always
  kDejaStopEnd = 6,         // the end of the recording; always
};

struct deja_replay_tensor {
  char name[64];
  uint32_t role;        // 1 send, 2 recv, 3 snapshot
  uint32_t dtype;       // ncclDataType_t, 255: bytes
  uint64_t count;       // elements
  uint64_t live;        // address in the program
  uint64_t recorded;    // address of the recorded bytes; 0: not kept
  uint64_t nan_count;   // as recorded
  uint32_t comparison;  // 0 not compared, 1 equal, 2 different
  uint32_t reserved;
};

struct deja_replay_frame {
  uint64_t module;  // address of the path; 0: unknown, offset is an address
  uint64_t offset;
};

struct deja_replay_thread {
  char name[32];
  char api[40];  // last call; empty: none yet
  int32_t tid;
  uint32_t comm;  // number + 1; 0: none
  uint64_t comm_seq;
  uint32_t parked;  // 1: waits in a call that the recording never left
  uint32_t stack;   // recorded stack of that call
  uint64_t places;  // that it has come to; the last ones are in recent[n % kDejaRecentPlaces]
  uint64_t recent[kDejaRecentPlaces];
};

// A tensor or state that the program has registered for checkpoints, in its own memory.
struct deja_replay_registered {
  char name[64];
  uint64_t address;
  uint64_t bytes;
  uint32_t dtype;  // as of tensors
  uint32_t reserved;
};

// A sleeping copy of the process (replayer/forks/forks.h).
struct deja_replay_image {
  int32_t pid;
  uint32_t pinned;  // by gdb: it is not one of those that are given up
  uint64_t number;
  uint64_t places;  // that the thread had come to
};

struct deja_replay_state_t {
  uint64_t magic = kDejaStateMagic;
  uint32_t version = kDejaStateVersion;
  uint32_t size = 0;
  // Written by gdb.
  uint32_t watched;
  uint32_t stop_next;
  uint32_t stop_nan;
  uint32_t stop_comm;  // number + 1; 0: any
  uint64_t stop_seq;   // 0: none
  uint64_t stop_step;  // step + 1; 0: none
  // Written by the library.
  uint32_t reason;
  uint32_t stopped_thread;  // index in threads
  uint32_t rank;
  uint32_t has_step;
  uint32_t stop_exit;  // by gdb: also stop when the program exits
  uint32_t reserved;
  uint64_t step;
  uint64_t operations;
  uint64_t digests_compared;
  uint64_t digests_different;
  uint32_t tensor_count;
  uint32_t frame_count;
  uint32_t thread_count;
  uint32_t end_frame_count;
  char message[1024];  // why it stopped
  char end_text[256];  // how the recording ends
  deja_replay_tensor tensors[32];
  deja_replay_frame frames[64];      // recorded stack of the current call
  deja_replay_frame end_frames[64];  // where the recorded process crashed
  deja_replay_thread threads[64];
  uint32_t python_frame_count;
  uint32_t reserved2;
  deja_replay_frame python_frames[64];  // live, of the thread that stopped
  // Written by gdb.
  uint64_t stop_place;  // 0: none; of the thread with this name
  char stop_thread[32];
  uint32_t mute;  // when the library is set up: show no output before the first stop
  uint32_t reserved3;
  // Written by the library.
  uint64_t start_step;  // the checkpoint's from which the replay went on, + 1; 0: none
  // Written by gdb.
  uint32_t keep_images;   // at places, where it can be done
  uint32_t image_wanted;  // in an image: it shall go on; a futex word
  // Written by the library. Where this process was, when it was last made an image of:
  uint64_t image_number;  // from 1
  uint64_t image_places;  // that the thread had come to
  uint64_t image_place;
  uint64_t image_operation;  // the thread's last place that is an operation
  uint64_t image_seq;        // the largest number of an operation on any communicator
  uint64_t image_step;       // + 1; 0: before the first
  char no_images[160];       // why none was made at the last place; empty: one could be
  uint32_t image_count;      // those that this process has made, and those before it
  uint32_t reserved4;
  deja_replay_image images[kDejaMaxImages];
  uint32_t registered_count;
  uint32_t reserved5;
  deja_replay_registered registered[kDejaMaxRegistered];
};

extern deja_replay_state_t deja_replay_state;
void deja_replay_stop(deja_replay_state_t* state, uint32_t reason);

}  // extern "C"

namespace deja::replayer {
// In a fork child: no debugger watches it, and it has been nowhere yet.
void ForgetPosition();
}  // namespace deja::replayer

static_assert(sizeof(deja_replay_tensor) == 112);
static_assert(sizeof(deja_replay_thread) == 168);
static_assert(sizeof(deja_replay_registered) == 88);
static_assert(offsetof(deja_replay_state_t, stop_seq) == 32);
static_assert(offsetof(deja_replay_state_t, reason) == 48);
static_assert(offsetof(deja_replay_state_t, stop_exit) == 64);
static_assert(offsetof(deja_replay_state_t, message) == 120);
static_assert(offsetof(deja_replay_state_t, keep_images) ==
              120 + 1024 + 256 + 32 * 112 + 3 * 64 * 16 + 64 * 168 + 8 + 56);
static_assert(sizeof(deja_replay_state_t) == offsetof(deja_replay_state_t, keep_images) + 8 + 48 +
                                                 160 + 8 + kDejaMaxImages * 24 + 8 +
                                                 kDejaMaxRegistered * 88);

#endif  // DEJA_REPLAYER_REPORT_POSITION_H_
