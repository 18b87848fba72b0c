// Progress: how far long work is, in a line on stderr that is redrawn in place.
//
// Only on a terminal, and only once the work has taken a second. One thread at a time.
#ifndef DEJA_CLI_PROGRESS_H_
#define DEJA_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace deja::cli {

// What the work is counted in.
enum class ProgressUnit { kBytes, kRanks, kFiles };

// "verifying run.deja: 34 %, 1.20 GB of 3.50 GB, 210 MB/s, 11 s left". `total` is not 0.
std::string ProgressText(std::string_view what, ProgressUnit unit, uint64_t done, uint64_t total,
                         uint64_t elapsed_ns);

class Progress {
 public:
  explicit Progress(std::string what, ProgressUnit unit = ProgressUnit::kBytes);
  // Takes the line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Update(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  ProgressUnit unit_;
  bool on_terminal_ = false;
  bool is_shown_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_PROGRESS_H_
