// The programs that the processes of a rank became by exec, as the trace says: what a replay of the
// rank will start, too. A process with a static program, or one that did nothing that is recorded,
// has no folder of its own. An event of its parent's, or of the image before it, names its program.
// For a process that was forked and did nothing before its exec the trace says only that it was
// there.
//
// Values; main thread only.
#ifndef DEJA_CLI_REPLAY_START_CHILD_PROGRAMS_H_
#define DEJA_CLI_REPLAY_START_CHILD_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

struct ChildProgram {
  std::string executable;
  std::vector<std::string> argv;
  size_t processes = 0;  // that became it

  [[nodiscard]] bool IsSameAs(const ChildProgram& other) const {
    return executable == other.executable && argv == other.argv;
  }
};

struct ChildPrograms {
  std::vector<ChildProgram> recorded;
  size_t unknown = 0;  // processes, and images that one became, of which no event has the program
};

// The programs that children of these ranks run: each program with the same arguments once, in the
// order in which the trace lists the processes. A child that only forked, and still runs its rank's
// program, is left out.
Result<ChildPrograms> ReadChildPrograms(format::Trace& trace, const std::vector<uint32_t>& ranks,
                                        int attempt);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_CHILD_PROGRAMS_H_
