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

// The process ends if the signal comes now. A thread that takes signals by sigwait has them
// blocked, as the others have.
bool WouldEnd(int pid, int signal);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_PROCESS_STATUS_H_
