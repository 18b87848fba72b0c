// What the recorder knows of a program's use of MPI: numbers of handles, types, communicators,
// requests that have results to come.
//
// The first time that a type or communicator occurs, it asks the real library (PMPI functions,
// which are local). It writes what it learns as an Input event:
// - MPI_Type_size: key: the type's number; result: its size. Data: the extent and, where elements
// have gaps, offset and length of each run of bytes (64-bit words)
// - MPI_Comm_size: the communicator's number, its size, and the caller's rank
//
// Any thread; no allocation but from the kernel.
#ifndef DEJA_RECORDER_MPI_MPI_STATE_H_
#define DEJA_RECORDER_MPI_MPI_STATE_H_

#include <atomic>
#include <cstdint>

#include "preload/calls/mpi_call.h"
#include "recorder/core/recording.h"
#include "recorder/events/event_writer.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/events/thread_state.h"

namespace deja::recorder {

// A request whose results are there when it is done.
struct MpiRequest {
  preload::Call call;  // that made it
  bool persistent = false;
  bool delivered = false;  // its results have been recorded
};

class MpiState final : public preload::MpiWorld {
 public:
  static constexpr RecordingPart kPart = RecordingPart::kMpi;

  explicit MpiState(EventWriter& writer) : writer_(writer) {}

  uint64_t NumberOf(uint64_t handle) override;
  preload::MpiType TypeOf(uint64_t type) override;
  preload::MpiPlace PlaceOf(uint64_t comm) override;

  // A call has returned `handle`. Libraries give the same handle out twice (groups): it keeps its
  // number until it has been ended as often.
  uint64_t Created(uint64_t handle);

  // True while the library can be asked.
  bool IsRunning();
  // Whether the program itself has initialised MPI, and no library that it uses.
  [[nodiscard]] bool is_programs() const { return is_programs_.load(std::memory_order_acquire); }
  void SetPrograms() { is_programs_.store(true, std::memory_order_release); }
  void SetRunning(bool running) { running_.store(running, std::memory_order_release); }

  // A request that has results to come, or is persistent.
  void AddRequest(uint64_t handle, const preload::Call& call, bool persistent);
  // A persistent request is started again: the call that made it; false if there is none.
  bool RestartRequest(uint64_t handle, preload::Call& call);

  // What is known of a handle that the next call may end. It is taken out before the call, because
  // another thread may be given the same handle before the call has returned here.
  struct Taken {
    uint64_t handle = 0;
    uint32_t number = 0;
    uint32_t uses = 0;
    uint32_t request = KeyMap::kMissing;
  };
  Taken Take(uint64_t handle);
  // The call has not ended it.
  void PutBack(const Taken& taken);
  // It has.
  void End(const Taken& taken);
  // The request of a taken handle, or of one that is only asked about; null if it has no results to
  // come. Marks it as delivered; false in `is_new` if it was.
  const MpiRequest* Deliver(uint32_t request, bool& is_new);
  uint32_t RequestOf(uint64_t handle);

 private:
  struct Type {
    uint64_t size = 0;
    int64_t extent = 0;
    uint32_t dtype = 0;
    bool known = false;
    uint32_t segment_count = 0;
    const preload::MpiSegment* segments = nullptr;
    preload::MpiSegment one;
  };

  bool Ask(uint64_t handle, Type& type);
  void Describe(uint64_t number, const Type& type);

  EventWriter& writer_;
  std::atomic<bool> running_{false};
  std::atomic<bool> is_programs_{false};
  SpinLock lock_;  // of the next three
  KeyMap numbers_;
  KeyMap uses_;
  uint32_t next_number_ = 0;
  KeyMap type_at_;
  StableArray<Type> types_;
  KeyMap place_at_;
  StableArray<preload::MpiPlace> places_;
  SpinLock request_lock_;  // of the rest
  KeyMap request_at_;
  StableArray<MpiRequest> requests_;  // an element belongs to the owner of its handle
  uint32_t free_requests_[4096] = {};
  uint32_t free_request_count_ = 0;
};

// A part of Recording.
inline MpiState& MpiOf(Recording& recording) {
  return recording.Of<MpiState>();
}

// What is known of MPI's calls on one thread; a part of its ThreadState.
struct MpiThread {
  static constexpr ThreadPart kPart = ThreadPart::kMpi;

  uint64_t polls = 0;  // questions that MPI answered no, since the thread's last event of MPI
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_MPI_MPI_STATE_H_
