// Verify: every frame, event and payload of a trace is read, and what does not fit is listed.
//
// Owner: the caller. One thread calls; a thread for each processor reads.
#ifndef DEJA_FORMAT_TRACE_VERIFY_H_
#define DEJA_FORMAT_TRACE_VERIFY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::format {

struct VerifyProblem {
  uint32_t rank = 0;
  std::string child;  // name of a process of the rank; empty: the rank itself
  std::string file;
  uint64_t offset = 0;
  std::string what;
};

struct VerifyReport {
  uint64_t ranks = 0;
  uint64_t children = 0;
  uint64_t frames = 0;
  uint64_t events = 0;
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  uint64_t events_lost = 0;        // gaps in the streams
  uint64_t payloads_missing = 0;   // referred to by an event and not there
  uint64_t payloads_dropped = 0;   // the same, because the window has moved on
  uint64_t payloads_left_out = 0;  // the same, but on purpose (LeftOut)
  std::vector<VerifyProblem> problems;
};

// Reads every frame, decodes every payload and compares its hash, and checks the streams for gaps;
// on a thread for each processor, a folder each. `progress(done, total)` may be empty; units are
// bytes; one thread calls it at a time.
Result<VerifyReport> Verify(Trace& trace, const std::function<void(uint64_t, uint64_t)>& progress);

// The first damaged frame with contents of the rank's tensors, in its own files and in those of
// ranks that share contents with it. Reads them up to there; empty: none.
std::string FindContentDamage(const Trace& trace, const RankReader& reader);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_VERIFY_H_
