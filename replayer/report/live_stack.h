// The replayed program's own stacks, in the same terms as recorded ones: module path + offset.
//
// Any thread. The unwinder reports LiveModules as it sees them; the tables are fixed and nothing is
// freed.
#ifndef DEJA_REPLAYER_REPORT_LIVE_STACK_H_
#define DEJA_REPLAYER_REPORT_LIVE_STACK_H_

#include <vector>

#include "preload/stack/stack.h"
#include "replayer/report/divergence.h"

namespace deja::replayer {

// The stack of the calling thread, without Deja's own frames.
std::vector<StackLine> LiveStack();
// The same by its number in the process.
StackId LiveStackNumber();

// From now on `sink` gets modules and stacks, too, before any caller gets their numbers. Null: no
// longer. Call it before LearnModules, so that none is missing.
void ForwardStacks(preload::StackSink* sink);

// GNU build id of a module that was learned, raw bytes; empty: it has none, or is not known.
std::string LiveBuildId(std::string_view path);

// Makes the modules that are loaded now known, so that CrashStack can name them.
void LearnModules();

// Where a signal interrupted the program, frame 0, and the frames around it, Python's last.
// Async-signal-safe.
using CrashFrames = preload::Frames;
void CrashStack(void* ucontext, CrashFrames& frames);

// Async-signal-safe.
struct CrashPlace {
  const char* path = nullptr;  // of the module; null: the address is in none
  uint64_t offset = 0;
};
CrashPlace PlaceOf(const format::StackFrame& frame);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_REPORT_LIVE_STACK_H_
