#include "cli/summaries/checkpoint_summary.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace deja::cli {

std::vector<std::string> CheckpointLines(
    const std::vector<format::RecordedCheckpoint>& checkpoints) {
  constexpr size_t kShown = 8;
  size_t complete = 0;
  std::string steps;
  const format::RecordedCheckpoint* last = nullptr;
  const format::RecordedCheckpoint* incomplete = nullptr;
  for (const format::RecordedCheckpoint& checkpoint : checkpoints) {
    if (!checkpoint.complete()) {
      incomplete = &checkpoint;
      continue;
    }
    last = &checkpoint;
    if (complete++ < kShown)
      steps += fmt::format("{}{}", steps.empty() ? "" : ", ", checkpoint.step);
  }
  if (complete > kShown) steps += fmt::format(" … {}", last->step);
  std::vector<std::string> lines;
  if (last != nullptr)
    lines.push_back(fmt::format("checkpoints: {} at step{} {}, the last with {} items of {}",
                                complete, complete == 1 ? "" : "s", steps, last->items.size(),
                                HumanBytes(last->bytes)));
  if (incomplete != nullptr)
    lines.push_back(fmt::format("checkpoints: {} cannot be used, the last of them at step {}: {}",
                                checkpoints.size() - complete, incomplete->step,
                                incomplete->incomplete));
  return lines;
}

nlohmann::json ToJson(const std::vector<format::RecordedCheckpoint>& checkpoints) {
  nlohmann::json all = nlohmann::json::array();
  for (const format::RecordedCheckpoint& checkpoint : checkpoints) {
    all.push_back({{"number", checkpoint.number},
                   {"step", checkpoint.step},
                   {"items", checkpoint.items.size()},
                   {"bytes", checkpoint.bytes},
                   {"complete", checkpoint.complete()}});
    if (!checkpoint.complete()) all.back()["why"] = checkpoint.incomplete;
  }
  return all;
}

std::string Describe(const format::Predicted& predicted) {
  if (predicted.elements == 0) return {};
  const std::string share =
      predicted.exact == predicted.elements
          ? "all its elements are what the optimizer should have made"
          : fmt::format("{:.4f} % of its elements are exactly what the optimizer should have made",
                        100 * static_cast<double>(predicted.exact) /
                            static_cast<double>(predicted.elements));
  return fmt::format("predicted: state of {} in {} payloads, kept in {}; {}",
                     HumanBytes(predicted.payload_bytes), HumanCount(predicted.payloads),
                     HumanBytes(predicted.stored_bytes), share);
}

nlohmann::json ToJson(const format::Predicted& predicted) {
  return {{"payloads", predicted.payloads},
          {"payload_bytes", predicted.payload_bytes},
          {"stored_bytes", predicted.stored_bytes},
          {"elements", predicted.elements},
          {"exact", predicted.exact}};
}

}  // namespace deja::cli
