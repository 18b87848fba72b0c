// What the trace of a replay says about where it comes from.
//
// Values; any thread.
#ifndef DEJA_CLI_SUMMARIES_REPLAY_SUMMARY_H_
#define DEJA_CLI_SUMMARIES_REPLAY_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <string>

#include "format/reader/replay_origin.h"

namespace deja::cli {

// "of /data/run.deja, from the checkpoint of step 40, to where it was asked to end"
std::string DescribeReplay(const format::ReplayOrigin& replay);
nlohmann::json ToJson(const format::ReplayOrigin& replay);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_REPLAY_SUMMARY_H_
