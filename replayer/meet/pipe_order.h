// What came by the rank's pipes with several writers or readers in the recording, for the writers
// in a replay. Each process puts what it read into a file of the scratch folder when it begins.
//
// The readers' messages, in the order in which they were counted, are what was written from `begin`
// on, in the order in which it was.
//
// Any thread, within the guard.
#ifndef DEJA_REPLAYER_MEET_PIPE_ORDER_H_
#define DEJA_REPLAYER_MEET_PIPE_ORDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deja::replayer {

class Session;

// A read of a pipe, as the recorder has written it down.
struct RecordedPipeRead {
  explicit RecordedPipeRead(std::string_view data);
  uint64_t position = 0;  // bytes that the process had read there before; 0: another had
  uint32_t size = 0;      // 0: the end
  bool several_readers = false;
  bool is_first_reader = false;
  bool is_alone = false;   // the only reader, and there was one writer: it got what was there
  std::string_view bytes;  // empty if there were too many, or the reader was alone
};

// What the pipe of the FIFO of this name is called.
uint64_t KeyOfFifo(std::string_view name);

// This process's reads, by the plan of its session: of FIFOs all of them.
void AnnouncePipes(const Session& session);

struct PipeOrder {
  uint64_t begin = 0;            // bytes that were read before the first of these
  uint32_t readers = 0;          // processes; 0: none has announced that it reads there
  bool several_readers = false;  // also where the others have not begun
  // What was read, in order. `known` is 0 for bytes that the recording does not have.
  std::string bytes;
  std::string known;

  // How much of `message` may be written after `written` bytes: all of it, or what is read in one
  // piece of a long one; 0: it is another's turn.
  [[nodiscard]] size_t Fits(std::string_view message, uint64_t written) const;
  [[nodiscard]] bool IsOver(uint64_t written) const { return written >= begin + bytes.size(); }
};
// The order of the pipe `key`, from all processes that have begun.
PipeOrder OrderOfPipe(const std::string& scratch, uint64_t key);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_PIPE_ORDER_H_
