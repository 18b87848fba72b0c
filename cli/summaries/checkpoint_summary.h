// What `deja info` says about a rank's checkpoints. Main thread only.
#ifndef DEJA_CLI_SUMMARIES_CHECKPOINT_SUMMARY_H_
#define DEJA_CLI_SUMMARIES_CHECKPOINT_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "format/reader/checkpoints.h"

namespace deja::cli {

// In the order of their numbers; empty: there are none.
std::vector<std::string> CheckpointLines(
    const std::vector<format::RecordedCheckpoint>& checkpoints);
nlohmann::json ToJson(const std::vector<format::RecordedCheckpoint>& checkpoints);

// How much of them follows from gradients, and whether the optimizer did what it said.
std::string Describe(const format::Predicted& predicted);
nlohmann::json ToJson(const format::Predicted& predicted);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_CHECKPOINT_SUMMARY_H_
