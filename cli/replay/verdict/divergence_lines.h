// What a replay says of a divergence or a crash: the sentence, and where the program was, in the
// recording and in the replay.
//
// Values; main thread only.
#ifndef DEJA_CLI_REPLAY_VERDICT_DIVERGENCE_LINES_H_
#define DEJA_CLI_REPLAY_VERDICT_DIVERGENCE_LINES_H_

#include <string>
#include <vector>

#include "cli/events/symbolizer.h"
#include "cli/replay/report/replay_report.h"

namespace deja::cli {

enum class StackDetail {
  kPython,  // of a stack with frames of Python's only those, each with its line of source
  kNative,  // all frames
};

// One divergence of the report: the sentence and both stacks, innermost
// frame first, or one where both are the same.
std::vector<std::string> DivergenceLines(const DivergenceLine& divergence, Symbolizer& symbolizer,
                                         StackDetail detail);

// Where the program crashed: its thread, and the stack, with Python's frames first and Deja's own.
std::vector<std::string> CrashLines(const CrashLine& crash, Symbolizer& symbolizer);

// The text of a line of a Python file, without the space around it and with control characters
// escaped; empty: the file is not here, is no regular file, or ends before.
std::string SourceLine(const std::string& file, int line);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_VERDICT_DIVERGENCE_LINES_H_
