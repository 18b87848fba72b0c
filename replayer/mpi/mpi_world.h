// The replay's view of MPI: handles that it gives out, types and communicators as they were
// recorded, requests that have results to come.
//
// A handle that a recorded call made is an address in memory that no process may touch. In MPICH's
// binary interface, it is a number that the library never gives out. So it is compared and passed
// on like any other, and never mistaken for one of the real library's. Predefined handles are the
// real library's own addresses, which programs are linked to; its functions are never called. One
// per session, never destroyed. Any thread.
#ifndef DEJA_REPLAYER_MPI_MPI_WORLD_H_
#define DEJA_REPLAYER_MPI_MPI_WORLD_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "preload/calls/mpi_call.h"
#include "replayer/core/session.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class ServedMpi final : public preload::MpiWorld {
 public:
  static constexpr SessionPart kPart = SessionPart::kMpi;

  explicit ServedMpi(const ReplayPlan& plan) : plan_(plan) {}

  uint64_t NumberOf(uint64_t handle) override;
  preload::MpiType TypeOf(uint64_t type) override;
  preload::MpiPlace PlaceOf(uint64_t comm) override;
  // The handle for a number of the recording.
  uint64_t HandleOf(uint64_t number);

  // The call whose results come with a request.
  void AddRequest(uint64_t number, const preload::Call& call);
  std::optional<preload::Call> FindRequest(uint64_t number);
  void EndRequest(uint64_t number);

  // Values that the program keeps in communicators and types, which are its own.
  using AttributeKey = std::pair<uint64_t, int>;  // number, keyval
  void SetAttribute(AttributeKey key, uint64_t value);
  uint64_t Attribute(AttributeKey key);
  // A place for a value of the library's own; stays.
  static uint64_t KeepInt(int value);

  std::atomic<bool> initialized{false};
  std::atomic<bool> finalized{false};
  std::atomic<uint64_t> attached_buffer{0};

 private:
  uint64_t Base();

  const ReplayPlan& plan_;
  std::mutex mutex_;
  uint64_t base_ = 0;
  std::map<uint64_t, std::vector<preload::MpiSegment>> segments_;  // by number of a type
  std::map<uint64_t, preload::Call> requests_;
  std::map<AttributeKey, uint64_t> attributes_;
};

// A part of Session.
inline ServedMpi& MpiOf(const Session& session) {
  return *session.Find<ServedMpi>();
}

// What is known of MPI's calls on one thread; a part of its ThreadState.
struct MpiThread {
  static constexpr ThreadPart kPart = ThreadPart::kMpi;

  uint64_t polls = 0;         // questions answered no, since the last call of MPI
  double clock = 0;           // the last time that MPI's clock was served
  double clock_live = 0;      // and when that was
  bool started_late = false;  // the questions were asked after the checkpoint
};

inline MpiThread& MpiOf(ThreadState& thread) {
  auto& mpi = thread.Of<MpiThread>();
  if (mpi.started_late != thread.started_late) {
    mpi.started_late = thread.started_late;
    mpi.polls = 0;
  }
  return mpi;
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MPI_MPI_WORLD_H_
