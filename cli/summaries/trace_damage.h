// Whether the events of a trace can all be read. Every command that reads a trace says so:
// what it says of a damaged one is not all that happened.
//
// Reads a rank's file of events and checks the checksums. `deja verify` alone looks at contents of
// tensors in any case. Main thread only.
#ifndef DEJA_CLI_SUMMARIES_TRACE_DAMAGE_H_
#define DEJA_CLI_SUMMARIES_TRACE_DAMAGE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"

namespace deja::cli {

// What is damaged first, as the file, the place and what is lost; empty: nothing.
std::string FindEventDamage(const format::RankReader& reader);
// The same of what is no event (header, index), which is read for it.
std::string FindOtherDamage(const format::RankReader& reader);

// The same of several, in their order, on several threads.
std::vector<std::string> FindEventDamage(const std::vector<const format::RankReader*>& readers);

// No event before this time of the recording is lost. 0: that is not known; UINT64_MAX: none is.
uint64_t FirstLostTime(const format::RankReader& reader);

// "rank 1: its recording is DAMAGED: …": the line on stderr. `who`: "rank 1".
void SayDamaged(const std::string& who, const std::string& damage);

// The processes that the rank has made, with their names; those that cannot be opened are left
// out.
std::vector<std::pair<std::string, const format::RankReader*>> ReadableChildren(
    format::Trace& trace, uint32_t rank, int attempt);

// Says it of all ranks of the trace, and of their children, that can be opened at all. True: there
// was one.
bool SayIfDamaged(format::Trace& trace);
// The same of two that are compared, which may be one.
bool SayIfDamaged(format::Trace& a, format::Trace& b);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_TRACE_DAMAGE_H_
