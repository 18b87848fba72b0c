// What the kernel says of a process in /proc/PID/status (proc(5)), of its first thread.
//
// Any thread, within the guard.
#ifndef DEJA_REPLAYER_PROCESS_PROCESS_STATUS_H_
#define DEJA_REPLAYER_PROCESS_PROCESS_STATUS_H_

#include <string_view>

namespace deja::replayer {

class ProcessStatus {
 public:
  explicit ProcessStatus(int pid);
  // The rest of the line that begins with "NAME:", without blanks before it. Empty: there is no
  // such field, or no such process. Lives as long as this object.
  [[nodiscard]] std::string_view Field(std::string_view name) const;

 private:
  char text_[4096];
  std::string_view all_;
};

// What a signal that comes now does to a process. It ends it, or it is pending, since the first
// thread has it blocked, as all have where one takes it by sigwait. Else there is a handler, or it
// is ignored.
enum class SignalEffect { kEnds, kPends, kHandled };
SignalEffect EffectOf(int signal, int pid);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_PROCESS_STATUS_H_
