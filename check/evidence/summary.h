// RankSummary: what the check keeps of one rank's recording; the map's result, the reduce's input.
//
// Self-contained: numbers of signatures and places are the summary's own, times are wall-clock
// nanoseconds. A collective takes sizeof(Call) bytes, so a rank with 100,000 of them takes a few
// megabytes. Values; no ownership.
#ifndef DEJA_CHECK_EVIDENCE_SUMMARY_H_
#define DEJA_CHECK_EVIDENCE_SUMMARY_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/evidence/call.h"
#include "check/evidence/call_list.h"
#include "check/evidence/seen.h"
#include "check/evidence/signature.h"

namespace deja::check {

// A frame of the program's own code.
struct Place {
  std::string file;  // its name without folders
  int line = 0;
  std::string function;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// Where a call was made: the program's own frames, innermost first. Empty: not known.
using Site = std::vector<Place>;

// "bucketed_reducer.cc:81 in Reduce"; "" if not known.
std::string Describe(const Place& place);
// The place that was described as "train.py:57 in main"; empty if the text is none.
Place ParsePlace(const std::string& text);
// "comms.cc:40 in AllReduceSum (from bucketed_reducer.cc:81 in Reduce)"
std::string Describe(const Site& site);

struct CommSummary {
  uint32_t number = 0;  // as `deja show --comm` takes it
  uint64_t hash = 0;
  uint64_t joined_as = 0;
  uint32_t rank = 0;
  uint32_t nranks = 0;
  std::string name;
  CallList collectives;  // in the order of their numbers
  size_t left_out = 0;   // of them, in front: the same ones on all ranks
  std::vector<Transfer> transfers;
};

// A call that was entered and never left.
struct OpenCall {
  std::string name;
  std::optional<uint32_t> comm;  // CommSummary::number
  uint64_t seq = 0;
  uint32_t site = kNoSite;
  uint64_t time_ns = 0;
  bool makes_communicator = false;
  uint64_t nranks = 0;                 // of that communicator; 0: not said
  int64_t place = -1;                  // of the rank in it; -1: not said
  std::vector<uint64_t> members = {};  // ranks of the job that are to be in it; empty: not said
  uint64_t identity = 0;               // equal where ranks mean the same one by name or unique id
};

enum class EndKind : uint8_t {
  kExit,     // by itself, with `code`
  kSignal,   // by a signal that it got from itself: it crashed
  kEnded,    // by a signal from outside: a launcher, a user, the kernel for lack of memory
  kUnknown,  // died without a word
  kRunning,  // no end yet
};

struct EndState {
  EndKind kind = EndKind::kUnknown;
  int code = 0;
  int signal = 0;
  std::string exception;  // of Python's, that ended the program
  uint32_t site = kNoSite;
  uint64_t time_ns = 0;  // of the last event

  [[nodiscard]] bool Well() const { return kind == EndKind::kExit && code == 0; }
  // By itself, and not as a successful program does.
  [[nodiscard]] bool Badly() const {
    return kind == EndKind::kSignal || (kind == EndKind::kExit && code != 0);
  }
  // "exit 1, ValueError: …", "SIGSEGV", "ended by SIGTERM from outside"
  [[nodiscard]] std::string Describe() const;
};

// The state of a registered tensor as a checkpoint has it.
struct StateDigest {
  std::string name;
  uint64_t step = 0;
  uint64_t digest = 0;
  uint64_t time_ns = 0;
};

struct RankSummary {
  uint32_t rank = 0;
  uint32_t world_size = 0;
  bool has_digests = false;
  // Events are missing: how many operations there were is not known.
  bool is_partial = false;
  std::string unknown;  // why; for humans

  std::vector<Signature> signatures;
  std::vector<Site> sites = {Site{}};
  std::vector<CommSummary> comms;
  std::vector<OpenCall> open;
  std::string last_call;  // "AllReduce #411 of comm 0"; empty: none
  uint32_t last_site = kNoSite;
  uint64_t last_step = kNoStep;
  uint64_t last_time_ns = 0;
  EndState end;
  std::vector<StateDigest> states;
  std::vector<std::string> names = {""};  // "metric=loss key=a"
  Seen seen;
  // What the rank ran on: name ("env NCCL_PROTO", "libfoo.so") and value, sorted.
  std::vector<std::pair<std::string, std::string>> surroundings;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SUMMARY_H_
