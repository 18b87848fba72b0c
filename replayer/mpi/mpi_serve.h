// How calls of the MPI API are served. Any thread.
#ifndef DEJA_REPLAYER_MPI_MPI_SERVE_H_
#define DEJA_REPLAYER_MPI_MPI_SERVE_H_

#include <cstdint>
#include <vector>

#include "preload/calls/input_calls.h"
#include "replayer/core/session.h"
#include "replayer/mpi/mpi_world.h"

namespace deja::replayer {

// The requests (and other handles) that a call may end, by number, as they are before it.
class MpiRequests {
 public:
  MpiRequests(const preload::Call& call, ServedMpi& mpi);
  [[nodiscard]] size_t size() const { return numbers_.size(); }
  uint64_t operator[](size_t i) const { return numbers_[i]; }

 private:
  std::vector<uint64_t> numbers_;
};

void ServeMpi(Session& session, ThreadState& thread, preload::Call& call);
void ServeMpiClock(Session& session, ThreadState& thread, preload::InputCall& call);
// A function without a row was called. Ends the replay.
void RefuseMpi(Session& session, ThreadState& thread, const char* name, const char* because);

// Puts the results of recorded call `index` where the live call wants them.
void GiveMpiResults(Session& session, ThreadState& thread, preload::Call& call,
                    const MpiRequests& requests, uint32_t index);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MPI_MPI_SERVE_H_
