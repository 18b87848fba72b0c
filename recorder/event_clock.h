// EventClock: CLOCK_MONOTONIC for the times of events, at less than half the price.
//
// Where the kernel itself keeps time by the processor's counter, the counter is read and the rest
// is arithmetic: a line through the last two comparisons with the kernel's clock. They are compared
// again every second, by whichever thread comes by. Elsewhere, and until the line is known, the
// kernel's clock is read. Off by a microsecond or so, and by as much times may seem to go back:
// they order events, they are not told to programs.
//
// Any thread, signal handlers too. Keeps errno, allocates nothing.
#ifndef DEJA_RECORDER_EVENT_CLOCK_H_
#define DEJA_RECORDER_EVENT_CLOCK_H_

#include <cstdint>

namespace deja::recorder {

// Asks the kernel once whether the counter may be used: system calls. Before that, NowNs() reads
// the kernel's clock.
void StartEventClock();

uint64_t EventNowNs();

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENT_CLOCK_H_
