// Whether a replay could go another way because the order in which threads took locks was not
// recorded (`deja record --threads order`).
//
// Reads events of the recording until it knows; any thread.
#ifndef DEJA_CLI_REPLAY_VERDICT_LOCK_ORDER_LACK_H_
#define DEJA_CLI_REPLAY_VERDICT_LOCK_ORDER_LACK_H_

#include "format/reader/rank_reader.h"

namespace deja::cli {

// The process had several threads, and its recording has no acquisition of a lock.
bool LacksLockOrder(const format::RankReader& reader);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_VERDICT_LOCK_ORDER_LACK_H_
