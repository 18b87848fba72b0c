#include "cli/replay/verdict/verdict_additions.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

namespace deja::cli {

void AddShortage(const std::string& shortage, ReplayVerdict& verdict) {
  if (shortage.empty()) return;
  const std::string text = "out of device memory: " + shortage;
  verdict.json["shortage"] = shortage;
  if (verdict.outcome == Outcome::kSame) {
    verdict.details.push_back(text);
  } else {
    verdict.outcome = Outcome::kFailed;
    verdict.details.insert(verdict.details.begin(), verdict.summary);
    verdict.summary = text;
  }
  verdict.json["verdict"] = OutcomeName(verdict.outcome);
  verdict.json["summary"] = verdict.summary;
  verdict.json["details"] = verdict.details;
}

void AddHang(const Hang& hang, bool lacks_lock_order, ReplayVerdict& verdict) {
  verdict.outcome = Outcome::kDiverged;
  verdict.summary = "the replay hung and was ended: " + hang.reason;
  verdict.details.insert(verdict.details.begin(), hang.waits.begin(), hang.waits.end());
  verdict.json["standstill"] = hang.waits;
  if (lacks_lock_order)
    verdict.details.push_back(
        "the order in which the rank's threads took locks was not recorded, and the program may "
        "depend on it; next: deja record --threads order");
  verdict.json["verdict"] = OutcomeName(verdict.outcome);
  verdict.json["summary"] = verdict.summary;
  verdict.json["details"] = verdict.details;
}

void AddDamage(const std::string& damage, uint64_t lost_from_ns, const format::RankReader& reader,
               ReplayVerdict& verdict) {
  if (damage.empty()) return;
  verdict.data_lost = true;
  const bool is_same = verdict.outcome == Outcome::kSame;
  bool is_apart = lost_from_ns == UINT64_MAX;
  if (!is_apart && !is_same && verdict.diverged_at) {
    const std::optional<uint64_t> by = NotLaterThan(reader, *verdict.diverged_at);
    is_apart = by && *by < lost_from_ns;
  }
  verdict.is_damages_doing = !is_same && !is_apart;
  if (!is_same) verdict.json["by_damage"] = verdict.is_damages_doing;
  verdict.summary += "; the recording is DAMAGED";
  if (!is_same)
    verdict.details.insert(verdict.details.begin(),
                           is_apart ? "what differs does not come from the damage"
                                    : "what differs may come from the damage alone");
  verdict.details.insert(verdict.details.begin(), "DAMAGED: " + damage);
  verdict.json["damaged"] = damage;
  verdict.json["data_lost"] = true;
  verdict.json["summary"] = verdict.summary;
  verdict.json["details"] = verdict.details;
}

void AddMissingDevice(const std::string& found, ReplayVerdict& verdict) {
  verdict.json["cuda"] = found;
  verdict.details.insert(verdict.details.begin(), "the recorded rank used CUDA; here " + found);
  verdict.json["details"] = verdict.details;
}

void AddChanges(const std::vector<Change>& changes, const std::string& trace,
                ReplayVerdict& verdict) {
  constexpr size_t kMostChanges = 4;
  std::vector<std::string> lines;
  for (const Change& change : changes) {
    verdict.json["changed"].push_back({{"part", change.part}, {"text", change.text}});
    if (lines.size() < kMostChanges)
      lines.push_back(fmt::format("not as recorded: {}: {}", change.part, change.text));
  }
  if (changes.size() > kMostChanges)
    lines.push_back(fmt::format("{} more parts are not as recorded; deja doctor {} lists them",
                                changes.size() - kMostChanges, trace));
  verdict.details.insert(verdict.details.begin(), lines.begin(), lines.end());
  verdict.json["details"] = verdict.details;
}

}  // namespace deja::cli
