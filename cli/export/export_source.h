// ExportSource: what every export of a trace is made of. And ExportFile, into which one is written.
//
// Borrows the job. Main thread only.
#ifndef DEJA_CLI_EXPORT_EXPORT_SOURCE_H_
#define DEJA_CLI_EXPORT_EXPORT_SOURCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/evidence/job.h"
#include "check/timeline/timeline.h"
#include "cli/summaries/rank_facts.h"
#include "common/os/file.h"
#include "common/result.h"

namespace deja::cli {

struct ExportSource {
  std::string trace;    // its path
  std::string made_by;  // "deja 1.2.3"
  const check::Job& job;
  std::vector<check::JoinedOperation> operations;  // of the job, by begin
  std::vector<RankFacts> ranks;                    // as Job::ranks
  check::Report report;
  bool has_operations = true;  // false: ranks, communicators and findings alone are written
  bool has_findings = true;    // false: nor findings, nor the steps of ranks

  [[nodiscard]] const check::Signature& SignatureOf(const check::Part& part) const {
    return job.signatures[part.call->signature];
  }
  [[nodiscard]] const check::CommSummary& CommOf(const check::JoinedOperation& one,
                                                 const check::Part& part) const;
  // "rank 3 (host, process 4711)"
  [[nodiscard]] std::string RankName(size_t index) const;
  // "comm 0 of ranks 0-3 (default_pg)"
  [[nodiscard]] std::string CommName(size_t communicator) const;
};

// A file that is written piece by piece. Errors are kept until Finish().
class ExportFile {
 public:
  static Result<ExportFile> Create(const std::string& path);

  void Write(std::string_view text);
  Status Finish();

 private:
  explicit ExportFile(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}
  void Flush();

  std::unique_ptr<AppendFile> file_;
  std::string held_;
  Status status_;
};

// Gives parts of one rank and communicator that overlap in time lanes of their own, so that each
// lane is a sequence.
class Lanes {
 public:
  // The lane of a part; parts of a rank come by begin.
  size_t Of(size_t rank, size_t communicator, const check::Part& part);

 private:
  std::map<std::pair<size_t, size_t>, std::vector<uint64_t>> ends_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_EXPORT_EXPORT_SOURCE_H_
