// MeasuredLog: a rank's log in a temporary folder, with what its background thread costs.
//
// Owner: one benchmark; one thread.
#ifndef DEJA_BENCHMARKS_RECORDING_MEASURED_LOG_H_
#define DEJA_BENCHMARKS_RECORDING_MEASURED_LOG_H_

#include <stdlib.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "format/log/rank_log.h"

namespace deja::format {

class MeasuredLog {
 public:
  MeasuredLog() {
    std::string name = (std::filesystem::temp_directory_path() / "deja-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return;
    folder_ = name;
    RankLogOptions options;
    options.trace_dir = folder_;
    auto made = RankLog::Create(options);
    if (made && (*made)->BecomeRank({})) log_ = std::move(*made);
  }
  ~MeasuredLog() {
    log_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  MeasuredLog(const MeasuredLog&) = delete;
  MeasuredLog& operator=(const MeasuredLog&) = delete;

  // Null: it could not be made.
  [[nodiscard]] RankLog* log() { return log_.get(); }

  // Processor time of the process but the calling thread counts from here on.
  void Start() {
    process_before_ = CpuSeconds(RUSAGE_SELF);
    thread_before_ = CpuSeconds(RUSAGE_THREAD);
  }
  // Ends the log. The seconds since Start.
  double Finish() {
    log_->Flush();
    const double drain =
        CpuSeconds(RUSAGE_SELF) - process_before_ - (CpuSeconds(RUSAGE_THREAD) - thread_before_);
    log_->Finish();
    return drain;
  }
  // Bytes of the folder, after Finish.
  [[nodiscard]] uint64_t bytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) bytes += entry.file_size();
    return bytes;
  }

 private:
  static double Seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  }
  static double CpuSeconds(int of) {
    rusage usage{};
    getrusage(of, &usage);
    return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  }

  std::string folder_;
  std::unique_ptr<RankLog> log_;
  double process_before_ = 0;
  double thread_before_ = 0;
};

}  // namespace deja::format

#endif  // DEJA_BENCHMARKS_RECORDING_MEASURED_LOG_H_
