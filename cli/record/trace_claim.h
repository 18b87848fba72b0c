// TraceClaim: which `deja record` processes write into a trace directory together.
//
// The first one makes the directory and in it the file `job`, atomically. The file holds the job's
// id and a key that says which job that is. Another `deja record` joins if its key is the same. So
// one trace holds the N processes that `mpirun -n N deja record …` starts, or plain processes with
// RANK and WORLD_SIZE. Anything else is a second job and is refused. Each process holds a shared
// lock on `job` while it runs, so that the last one knows that it is the last.
//
// Owner: cmd_record.cc; main thread.
#ifndef DEJA_CLI_RECORD_TRACE_CLAIM_H_
#define DEJA_CLI_RECORD_TRACE_CLAIM_H_

#include <optional>
#include <string>

#include "common/result.h"

namespace deja::cli {

class TraceClaim {
 public:
  // `directory` is absolute. `force`: a finished or abandoned trace that is there is removed first.
  static Result<TraceClaim> Make(const std::string& directory, bool force);
  // True if `directory` is being recorded by this very job and Make would join.
  static bool CanJoin(const std::string& directory);
  TraceClaim(TraceClaim&& other) noexcept;
  TraceClaim& operator=(TraceClaim&&) = delete;
  ~TraceClaim();

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const std::string& job_id() const { return job_id_; }  // 32 hex digits
  // True if this process is one of several that record the same job.
  [[nodiscard]] bool is_shared() const { return is_shared_; }
  // True if no other `deja record` of the job runs any more. It stays true.
  bool IsLast();
  // Removes `job` and the directory if no rank came about.
  void RemoveIfEmpty();

 private:
  TraceClaim(std::string directory, std::string job_id, bool is_shared, int fd)
      : directory_(std::move(directory)),
        job_id_(std::move(job_id)),
        is_shared_(is_shared),
        fd_(fd) {}
  std::string directory_;
  std::string job_id_;
  bool is_shared_ = false;
  int fd_ = -1;
};

// What tells the job apart whose launcher started this process as one of several; nothing if it was
// not. `rank` is set to this process's rank in it.
std::optional<std::string> SharedJobKey(uint32_t& rank);

}  // namespace deja::cli

#endif  // DEJA_CLI_RECORD_TRACE_CLAIM_H_
