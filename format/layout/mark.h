// Marks: a process outside of a recorded job asks it to keep its window of payloads.
//
// A mark is a file in the trace's folder, `mark-1`, `mark-2`, …, with the reason in it. Ranks look
// for the next one now and then, on whatever machine they run. Values only; any thread.
#ifndef DEJA_FORMAT_LAYOUT_MARK_H_
#define DEJA_FORMAT_LAYOUT_MARK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace deja::format {

std::string MarkPath(const std::string& trace_dir, uint64_t number);
// Leaves the next mark; its number.
Result<uint64_t> LeaveMark(const std::string& trace_dir, std::string_view reason);
// The same for a rank that is about to end; async-signal-safe. Several ranks may end at the same
// moment, and all ranks look at each mark. So a mark of the last seconds is enough, and no other is
// made.
void LeaveMarkIfNoneIsNew(const char* trace_dir, const char* reason);
// Removes all marks, when no process records any more.
void RemoveMarks(const std::string& trace_dir);
// The reason in it, cut where it is long; nothing if the file cannot be read.
std::string ReadMark(const std::string& trace_dir, uint64_t number);

}  // namespace deja::format

#endif  // DEJA_FORMAT_LAYOUT_MARK_H_
