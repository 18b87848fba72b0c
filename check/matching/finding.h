// Finding: one thing that went differently on some ranks, with what shows it.
//
// docs/FINDINGS.md says what each kind means. Values.
#ifndef DEJA_CHECK_MATCHING_FINDING_H_
#define DEJA_CHECK_MATCHING_FINDING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/evidence/summary.h"

namespace deja::check {

enum class Kind : uint8_t {
  kSignature,
  kOrder,
  kMissing,
  kLeftEarly,
  kPairing,
  kCycle,
  kGroup,
  kNanOrigin,
  kReplica,
  kCorrupt,
  kInput,
  kUnawaited,
  kStore,
  kOutside,
  kStraggler,
  kResume,
};
// "left-early"
std::string_view NameOf(Kind kind);

// What some of the ranks did where they differ.
struct Side {
  std::vector<uint32_t> ranks;
  std::string what;  // "AllReduce float32[8] sum #12"; or where they were instead
  Site site;
  std::optional<uint32_t> comm;  // and seq: as `deja show` takes them, of the first of `ranks`
  uint64_t seq = 0;
};

struct Consequence {
  Kind kind = Kind::kMissing;
  std::string sentence;
};

struct Finding {
  Kind kind = Kind::kSignature;
  std::string sentence;
  std::vector<uint32_t> blamed;   // ranks that did something else
  std::vector<uint32_t> waiting;  // ranks that only waited, or failed for it
  std::string comm;               // "comm 0"; empty: none
  std::vector<uint32_t> members;  // the ranks of it that are in the trace
  uint64_t number = 0;            // of the operation among the collectives of comm, from 1; 0: none
  uint64_t step = kNoStep;
  std::vector<Side> sides;     // those to blame first
  std::optional<Side> agreed;  // the last event that all did alike
  std::vector<std::string> evidence;
  std::vector<std::string> next;  // commands, with RUN for the trace
  std::vector<Consequence> consequences;
  uint64_t time_ns = 0;  // when it began
};

}  // namespace deja::check

#endif  // DEJA_CHECK_MATCHING_FINDING_H_
