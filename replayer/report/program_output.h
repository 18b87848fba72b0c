// What the program prints: shown late, or not at all.
//
// A replay that gdb starts again prints what the user has seen already, until it reaches its
// destination. MuteOutput and UnmuteOutput: one thread at a time.
#ifndef DEJA_REPLAYER_REPORT_PROGRAM_OUTPUT_H_
#define DEJA_REPLAYER_REPORT_PROGRAM_OUTPUT_H_

namespace deja::replayer {

// What is in the buffer of stdout is written, unless some thread is printing now.
void FlushOutput();

// Standard output and error go nowhere, until UnmuteOutput. They keep their numbers.
void MuteOutput();
void UnmuteOutput();
// True for the descriptors with which they come back.
bool IsKeptOutput(int fd);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_REPORT_PROGRAM_OUTPUT_H_
