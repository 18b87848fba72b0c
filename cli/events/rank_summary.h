// RankSummary: what one rank's recording says about how the rank ended, and the names that its
// events refer to.
//
// It is read once from the batches that matter: those that define things, and the last ones of each
// thread. So the cost does not grow with the length of the recording. A value; keeps copies, no
// views into the reader.
#ifndef DEJA_CLI_EVENTS_RANK_SUMMARY_H_
#define DEJA_CLI_EVENTS_RANK_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/events/symbolizer.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct ModuleName {
  std::string path;
  std::string build_id;
  uint64_t base = 0;
};

// A collective, point-to-point or other call as it is named in sentences.
struct CallSummary {
  std::string thread;
  std::string name;              // "AllReduce"
  std::optional<uint32_t> comm;  // CommId
  uint64_t comm_seq = 0;
  uint64_t time_ns = 0;
  uint32_t stack = 0;

  // "AllReduce #412 of comm 0"
  [[nodiscard]] std::string Describe() const;
};

// What NCCL has chosen for the collectives of one kind.
struct ChoiceSummary {
  std::string call;       // "AllReduce"
  std::string algorithm;  // "RING"
  std::string protocol;   // "LL128"
  uint32_t channels = 0;  // 0: not known
};

struct CommSummary {
  uint32_t number = 0;  // CommId
  uint64_t hash = 0;
  uint64_t joined_as = 0;  // CommNames
  uint32_t rank = 0;
  uint32_t nranks = 0;
  std::optional<uint32_t> parent;
  std::string name;
  uint64_t last_seq = 0;                 // of the last operation
  std::optional<CallSummary> last_call;  // that operation
  std::map<uint32_t, ChoiceSummary>
      choices;  // by api id: for the last ones of each kind that were read
  // Cut short: by which call ("CommAbort"), and how many tensors were under way.
  std::string given_up_by;
  uint32_t under_way = 0;
};

struct CrashSummary {
  std::string thread;
  int signal = 0;
  int code = 0;
  uint64_t address = 0;
  int32_t sender_pid = 0;
  uint32_t stack = 0;
  std::vector<format::StackFrame> frames;
};

struct RankSummary {
  std::map<uint32_t, std::string> api_names;
  std::map<uint32_t, std::string> threads;  // ThreadIndex -> name
  std::map<uint32_t, CommSummary> comms;    // CommId
  std::map<uint32_t, ModuleName> modules;
  std::map<uint32_t, std::vector<format::StackFrame>> stacks;
  std::vector<std::string> degraded;     // reasons, in order
  std::vector<std::string> remarks;      // the same of what no replay needs
  std::vector<CallSummary> open_calls;   // entered and never left
  std::optional<CallSummary> last_call;  // the last one on a communicator
  std::optional<CrashSummary> crash;     // the last fatal signal
  std::string exception;  // of Python's, that ended the program: "ValueError: text", and where
  std::optional<format::ProcessExit> exit;
  std::optional<uint64_t> last_step;
  uint64_t last_time_ns = 0;
  format::ProcessFate fate;
  bool swept = false;
  uint64_t oom_kills = 0;  // of processes of its memory cgroup, while it ran
  bool finished = false;   // has a footer
  bool running = false;    // no footer, and its process is alive
  bool imported = false;   // from a dump of another recorder

  // "AllReduce" for ncclAllReduce; "call 77" for an id without a name.
  [[nodiscard]] std::string ApiName(uint32_t api) const;
  [[nodiscard]] std::string ThreadName(uint32_t thread) const;
  // Frames of a stack with names; `first_is_pc` for stacks that a signal handler took.
  [[nodiscard]] std::vector<SourceFrame> Resolve(Symbolizer& symbolizer,
                                                 const std::vector<format::StackFrame>& frames,
                                                 bool first_is_pc) const;
  // The first frame that is the program's own code: what a reader wants to see of a stack.
  [[nodiscard]] std::optional<SourceFrame> ProgramFrame(
      Symbolizer& symbolizer, const std::vector<format::StackFrame>& frames,
      bool first_is_pc) const;
  // Where the program of Python made the call, " at train.py:88 in train_step"; empty: not known.
  [[nodiscard]] std::string PythonPlace(Symbolizer& symbolizer, const CallSummary& call) const;
  // "SIGSEGV at sampler.cc:81, after AllReduce #412 of comm 0"; "exit 0"; "killed by SIGKILL in …".
  [[nodiscard]] std::string HowItEnded(Symbolizer& symbolizer) const;
  // True when the rank ended as a successful program does.
  [[nodiscard]] bool EndedWell() const;
};

// "ValueError: text at train.py:57 in main" of the note about an exception of Python's that ends
// the program; empty: the note is about something else.
std::string ExceptionText(std::string_view note);

RankSummary ReadRankSummary(const format::RankReader& reader);

// It has no footer, and its process is alive.
bool IsRunning(const format::RankReader& reader);

// The frame is the program's own code: not Deja's, NCCL's, Python's, PyTorch's or the system's.
bool IsProgramFrame(const SourceFrame& frame);

// "SIGSEGV"
std::string SignalName(int signal);

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_RANK_SUMMARY_H_
