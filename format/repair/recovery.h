// Recovery: completing the folder of a process that died without finishing it.
//
// Done by the `deja record` that started the process, when that process is gone, and by
// `deja recover`. It appends what the tail still holds to the folder's files, and cuts a torn frame
// off. Then it writes index and footer (Footer.swept = 1) and removes the tail. Running it on a
// finished folder changes nothing. Several processes may do it at once: one after the other has the
// folder.
//
// Nothing here may run while the process that owns the folder lives.
#ifndef DEJA_FORMAT_REPAIR_RECOVERY_H_
#define DEJA_FORMAT_REPAIR_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/wire/messages.h"

namespace deja::format {

struct RecoveryReport {
  std::string folder;
  bool was_finished = false;
  uint64_t events_from_tail = 0;
  uint64_t payloads_from_tail = 0;
  uint64_t torn_bytes_cut = 0;
};

// Completes one rank's folder. `fate`, if known, goes into the footer (also of a finished folder).
// `progress` hears how many bytes of its files have been read; it may be empty.
Result<RecoveryReport> RecoverRank(const std::string& folder, const ProcessFate& fate,
                                   const std::function<void(uint64_t)>& progress = {});

// Removes the tail that a header names, if the file is named as one: the path comes out of a trace.
void RemoveTail(const std::string& path);

// A tail (or pending folder) of the job that belongs to no rank: its process never made a
// communicator. Removes those whose process is gone; returns how many.
Result<int> RemoveOrphanTails(const std::string& trace_dir, const std::string& job_id);

// Removes what processes of jobs had in common (job_memory.h) and left behind when all of them were
// killed. Only what is of this user, `least_age_s` old and not used by any process with a tail in
// `directory`. (A job that goes on after such a pause makes a new one.) Returns how many.
int RemoveOldJobMemory(const std::string& directory, uint64_t least_age_s);

}  // namespace deja::format

#endif  // DEJA_FORMAT_REPAIR_RECOVERY_H_
