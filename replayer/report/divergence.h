// Divergence: where a replay's bytes or calls differ from the recording's, in words and as JSON.
//
// Values; no ownership beyond their strings; any thread; allocates. Not for signal handlers.
#ifndef DEJA_REPLAYER_REPORT_DIVERGENCE_H_
#define DEJA_REPLAYER_REPORT_DIVERGENCE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "digest/elements.h"
#include "format/wire/messages.h"
#include "replayer/report/report.h"

namespace deja::replayer {

enum class DivergenceKind : uint8_t {
  kCall,       // another call than the recorded one
  kArguments,  // the same call with other arguments
  kInput,      // the same call with other input bytes
  kExtraCall,  // a call where the recording has none
  kEntropy,    // a nondeterministic input was asked for that the recording does not have
  kSnapshot,   // deja_tensor or deja_state shows other bytes
  kFile,       // a file that the recorded run read is another, or is not there
  kSent,       // other bytes were sent to a peer that is not there
  kEnd,        // the recorded end (a crash, an exit) did not come
  kResult,     // what a library computes again has other bytes
};
const char* KindName(DivergenceKind kind);

struct StackLine {
  std::string module;  // path; empty: unknown, offset is an address
  std::string build_id;
  uint64_t offset = 0;
};

struct Divergence {
  DivergenceKind kind = DivergenceKind::kCall;
  std::string thread;
  std::string api;  // "AllReduce"
  bool has_step = false;
  uint64_t step = 0;
  uint32_t comm = 0;  // number + 1; 0: none
  uint32_t comm_rank = 0;
  uint32_t comm_nranks = 0;
  uint64_t comm_seq = 0;
  uint64_t launch = 0;  // of the graph that it is captured into, from 1; 0: it is not captured
  std::string what;     // for calls, arguments, entropy, end: the sentence
  std::string tensor;   // name of the parameter or snapshot
  uint32_t dtype = format::kRawBytes;
  uint64_t count = 0;
  Hash128 recorded_hash;
  Hash128 live_hash;
  format::TensorStats recorded_stats;
  format::TensorStats live_stats;
  bool has_recorded_bytes = false;
  digest::ElementDifference element;
  std::vector<StackLine> recorded_stack;
  std::vector<StackLine> live_stack;

  // "step 17, AllReduce #412 of comm 0 (rank 2 of 4): …", one line.
  [[nodiscard]] std::string Describe() const;
  // Adds the line about it to the report.
  void WriteTo(const Report& report) const;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_REPORT_DIVERGENCE_H_
