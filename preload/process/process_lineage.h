// Which processes a process descends from, by the kernel's numbers, as /proc says it now.
//
// Any thread; the guard must be held, since files are read. A process that cannot be read, because
// it or its parent has ended, has no ancestors.
#ifndef DEJA_PRELOAD_PROCESS_PROCESS_LINEAGE_H_
#define DEJA_PRELOAD_PROCESS_PROCESS_LINEAGE_H_

#include <span>
#include <string_view>

namespace deja::preload {

// True if `pid` is `ancestor` or descends from it.
bool DescendsFrom(int pid, int ancestor);

// "PID PARENT … ANCESTOR" into `out`; empty if it does not descend from it, or does not fit.
std::string_view WriteLineage(int pid, int ancestor, std::span<char> out);
// True if a text of WriteLineage has `pid`.
bool LineageHas(std::string_view lineage, int pid);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_PROCESS_LINEAGE_H_
