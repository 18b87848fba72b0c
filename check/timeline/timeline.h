// Timeline: a job's operations, each joined across the ranks that took part in it.
//
// Collectives are joined by their number among the collectives of a communicator, transfers by
// their number between a sender and a receiver. An operation whose ranks called different things is
// joined too: the picture of a mismatch has both. Pure; one thread. Linear in the calls, but for
// the sorting by time.
#ifndef DEJA_CHECK_TIMELINE_TIMELINE_H_
#define DEJA_CHECK_TIMELINE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "check/evidence/job.h"

namespace deja::check {

// One rank's part in an operation. Times are wall-clock nanoseconds of the rank's machine.
struct Part {
  size_t rank = 0;             // index of Job::ranks
  uint32_t comm = 0;           // as `deja show --comm` takes it on that rank
  const Call* call = nullptr;  // of the job
  uint64_t begin_ns = 0;       // the rank entered
  uint64_t end_ns = 0;         // its part was done; of one that never was: the rank's last event
  bool is_open = false;        // it was never done
};

struct JoinedOperation {
  size_t communicator = 0;  // index of Job::communicators
  uint64_t number = 0;      // from 1
  bool is_transfer = false;
  bool agrees = true;       // the calls of its parts fit each other
  std::vector<Part> parts;  // by rank in the communicator; of a transfer the sender first
  uint64_t begin_ns = 0;    // the first part's
  uint64_t met_ns = 0;      // the last part's begin
  uint64_t end_ns = 0;      // the last part's end

  // Index of the part that entered last.
  [[nodiscard]] size_t Last() const;
};

// What one rank waited for others, and others for it, in collectives that wait for all ranks.
struct RankWaits {
  uint64_t inside_ns = 0;   // in operations, waits included
  uint64_t waited_ns = 0;   // until the last rank had entered
  uint64_t kept_ns = 0;     // the others waited for this rank alone
  uint64_t times_last = 0;  // it entered last
  uint64_t operations = 0;  // of any kind
};

// By the time of their begin. Borrows the job, which must not change.
std::vector<JoinedOperation> JoinOperations(const Job& job);

// One for each of Job::ranks.
std::vector<RankWaits> WaitsOf(const Job& job, const std::vector<JoinedOperation>& operations);

}  // namespace deja::check

#endif  // DEJA_CHECK_TIMELINE_TIMELINE_H_
