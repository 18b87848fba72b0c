// Whether the events of a trace can all be read. Every command that reads a trace says so first:
// what it says of a damaged one is not all that happened.
//
// Reads each batch of events and checks its checksum; contents of tensors are looked at by `deja
// verify` alone. Main thread only.
#ifndef DEJA_CLI_SUMMARIES_TRACE_DAMAGE_H_
#define DEJA_CLI_SUMMARIES_TRACE_DAMAGE_H_

#include <string>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"

namespace deja::cli {

// What is damaged first; empty: nothing.
std::string FindEventDamage(const format::RankReader& reader);

// The same of several, in their order, on several threads.
std::vector<std::string> FindEventDamage(const std::vector<const format::RankReader*>& readers);

// "rank 1: its recording is DAMAGED: …": the line on stderr. `who`: "rank 1".
void SayDamaged(const std::string& who, const std::string& damage);

// Says it of all ranks of the trace that can be opened at all. True: there was one.
bool SayIfDamaged(format::Trace& trace);
// The same of two that are compared, which may be one.
bool SayIfDamaged(format::Trace& a, format::Trace& b);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_TRACE_DAMAGE_H_
