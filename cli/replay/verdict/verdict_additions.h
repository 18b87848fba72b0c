// What is added to a rank's verdict from outside its report: the machine, the program's files, the
// recording's state.
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_VERDICT_VERDICT_ADDITIONS_H_
#define DEJA_CLI_REPLAY_VERDICT_VERDICT_ADDITIONS_H_

#include <string>
#include <vector>

#include "cli/replay/verdict/replay_verdict.h"
#include "cli/replay/watch/standstill.h"
#include "cli/summaries/program_parts.h"

namespace deja::cli {

// There was no device memory for the rank, as `shortage` says: a rank that did not reach its
// recorded end failed for that reason.
void AddShortage(const std::string& shortage, ReplayVerdict& verdict);

// The replay was ended because it hung. `lacks_lock_order`: that may be why (lock_order_lack.h).
void AddHang(const Hang& hang, bool lacks_lock_order, ReplayVerdict& verdict);

// The rank used CUDA, and this machine's driver has no device for it, as `found` says. That may be
// why a rank did not reach its recorded end.
void AddMissingDevice(const std::string& found, ReplayVerdict& verdict);

// Parts of the program that are not as recorded, for a rank that did not do the same. The first of
// them goes before where it diverged. `trace`: as the user named it.
void AddChanges(const std::vector<Change>& changes, const std::string& trace,
                ReplayVerdict& verdict);

// Part of the recording could not be read, as `damage` says; empty: all could.
// `lost_from_ns`: no event of the recording before that time is lost. A divergence before it is
// none of the damage's.
void AddDamage(const std::string& damage, uint64_t lost_from_ns, const format::RankReader& reader,
               ReplayVerdict& verdict);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_VERDICT_VERDICT_ADDITIONS_H_
