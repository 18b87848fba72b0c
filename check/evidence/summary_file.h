// The file that keeps a rank's summary beside its recording, so that a check need not read that.
//
// It is bound to the size of the recording's events and to their first and last 64 KiB, where
// header, index and totals are. It is also bound to `producer`, the version of Deja that made it.
// Damage in the middle of the events does not show there (`deja verify` finds it). Threads: one a
// folder.
#ifndef DEJA_CHECK_EVIDENCE_SUMMARY_FILE_H_
#define DEJA_CHECK_EVIDENCE_SUMMARY_FILE_H_

#include <cstdint>
#include <string>

#include "check/evidence/summary.h"
#include "common/result.h"

namespace deja::check {

// What a summary is made from: the state of a folder's events.
struct SummarySource {
  uint64_t bytes = 0;
  uint64_t ends = 0;  // checksum of both ends
  friend bool operator==(const SummarySource&, const SummarySource&) = default;
};

inline constexpr char kSummaryFile[] = "summary.deja";

// To be taken before the events are read: what comes meanwhile makes the summary stale.
Result<SummarySource> SummarySourceOf(const std::string& folder);

// Replaces the folder's summary, if it has one, in one step; the size of the file.
Result<uint64_t> WriteSummaryFile(const std::string& folder, const SummarySource& source,
                                  const std::string& producer, const RankSummary& summary);

// kNotFound: the folder has none. Another error says why it is of no use.
Result<RankSummary> ReadSummaryFile(const std::string& folder, const std::string& producer);

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SUMMARY_FILE_H_
