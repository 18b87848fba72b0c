// Progress: how far long work is, in the status line (status_line.h).
//
// Only once the work has taken a second. A thread of its own redraws the line, so that it moves
// while the work says nothing. Update and Begin: any thread.
#ifndef DEJA_CLI_PROGRESS_H_
#define DEJA_CLI_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace deja::cli {

// What the work is counted in.
enum class ProgressUnit { kBytes, kRanks, kFiles };

// "verifying run.deja: 34 %, 1.20 GB of 3.50 GB, 210 MB/s, 11 s left". `total` 0: it is not known,
// "writing run.html: 3 s".
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
  // The next part of the work, whose total is not known until its first Update.
  void Begin(std::string what, ProgressUnit unit = ProgressUnit::kBytes);

 private:
  using Clock = std::chrono::steady_clock;

  void Draw();

  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::string what_;
  ProgressUnit unit_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  Clock::time_point begin_ = Clock::now();
  std::thread drawer_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_PROGRESS_H_
