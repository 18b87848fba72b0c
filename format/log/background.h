// How the background thread of a recording runs beside the program's own threads.
//
// Values; called by the thread itself. What the system refuses stays as it is.
#ifndef DEJA_FORMAT_LOG_BACKGROUND_H_
#define DEJA_FORMAT_LOG_BACKGROUND_H_

#include <string>
#include <string_view>
#include <vector>

namespace deja::format {

struct BackgroundOptions {
  int nice = 0;           // added to the process's; 0 to 19
  bool idle_io = false;   // the disk serves everybody else first
  std::string cpus = {};  // "0-3,8"; empty: where the program runs
};

// The numbers in a list like "0-3,8"; empty if it is none.
std::vector<int> ParseCpuList(std::string_view text);

// For the calling thread.
void RunInBackground(const BackgroundOptions& options);

}  // namespace deja::format

#endif  // DEJA_FORMAT_LOG_BACKGROUND_H_
