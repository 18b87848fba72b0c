// TraceDiff: where the recordings of two ranks differ first.
//
// It compares two things, not when things happened, nor how threads interleaved:
// - operations of communicators, by communicator and number: arguments, and digests of inputs and
// results
// - snapshots, by name
//
// Both recordings are read once, side by side. Memory grows with what one of them has and the other
// has not (yet). What a replay left out is not missing if it started at a checkpoint or was asked
// to end. Borrows the readers. One thread.
#ifndef DEJA_CLI_DIFF_TRACE_DIFF_H_
#define DEJA_CLI_DIFF_TRACE_DIFF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/events/rank_summary.h"
#include "digest/elements.h"
#include "format/reader/rank_reader.h"
#include "format/reader/replay_origin.h"

namespace deja::cli {

// One of the two recordings.
struct DiffSide {
  const format::RankReader* reader = nullptr;
  const RankSummary* summary = nullptr;
  std::optional<format::ReplayOrigin> replay;  // it is a replay's own trace
};

enum class DiffKind : uint8_t {
  kMissing,    // one of them ends before, or never does it
  kOperation,  // another operation has this number
  kArguments,  // the same one with other arguments
  kInput,      // the same one with other bytes
  kResult,     // … of which other bytes came out
  kSnapshot,   // deja_tensor or deja_state shows other bytes
};
const char* DiffKindName(DiffKind kind);

// How one side did what differs; nothing if it did not.
struct DiffPlace {
  double seconds = 0;    // since its recording began
  uint64_t wall_ns = 0;  // by the clock of its machine, since 1970
  std::optional<uint64_t> step;
  std::string thread;
  uint32_t stack = 0;     // in its own numbers; 0: not known
  std::string arguments;  // " count=25632 op=sum"
  std::optional<format::Tensor> tensor;
  std::optional<uint32_t> comm;  // of an operation, and its number there
  uint64_t comm_seq = 0;
};

struct Difference {
  DiffKind kind = DiffKind::kMissing;
  std::string what;      // "AllReduce #412 of comm 0", "snapshot weights (5th)"
  std::string tensor;    // "input 1", "result"; empty: not about a tensor
  std::string snapshot;  // its name; empty: about an operation
  std::optional<DiffPlace> a;
  std::optional<DiffPlace> b;
  digest::ElementDifference element;  // `found` only if both sides have the bytes
  // In A, or in B if A does not reach it.
  [[nodiscard]] const DiffPlace& place() const { return a ? *a : *b; }
};

// The first random bytes that the program was given and that differ: often the reason of all else.
struct EntropyDifference {
  std::string call;    // "getrandom"
  uint64_t count = 0;  // the how manieth of its thread, from 1
  std::string thread;
  double seconds = 0;  // in A
};

struct RankDiff {
  uint64_t operations = 0;  // that both have
  uint64_t tensors = 0;     // whose digests were compared
  uint64_t snapshots = 0;
  std::optional<Difference> first;
  std::optional<EntropyDifference> entropy;
};

struct DiffOptions {
  // Two ranks of one job: only what must be the same on all ranks is compared (what all-reduce,
  // all-gather and broadcast leave, and snapshots); communicators are matched by their identity.
  bool between_ranks = false;
  std::vector<std::string> ignored;  // names of snapshots, as fnmatch(3) has them: "*rng"
};

RankDiff CompareRecordings(const DiffSide& a, const DiffSide& b, const DiffOptions& options);

}  // namespace deja::cli

#endif  // DEJA_CLI_DIFF_TRACE_DIFF_H_
