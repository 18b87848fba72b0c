#include "cli/summaries/replay_summary.h"

#include <fmt/format.h>

namespace deja::cli {

std::string DescribeReplay(const format::ReplayOrigin& replay) {
  std::string text = "of " + replay.trace;
  if (replay.from_step) text += fmt::format(", from the checkpoint of step {}", *replay.from_step);
  if (replay.ended_ns) text += ", to where it was asked to end";
  return text;
}

nlohmann::json ToJson(const format::ReplayOrigin& replay) {
  nlohmann::json json = {{"trace", replay.trace}, {"ended_as_asked", replay.ended_ns.has_value()}};
  if (replay.from_step) json["from_step"] = *replay.from_step;
  return json;
}

}  // namespace deja::cli
