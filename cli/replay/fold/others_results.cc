#include "cli/replay/fold/others_results.h"

#include <algorithm>

#include "api/nccl_table.h"
#include "cli/events/rank_summary.h"

namespace deja::cli {
namespace {

using format::EventKind;

// The most operations that a device may not have reached when its process ends.
constexpr uint64_t kMostUnderWay = 1024;

// What a rank knows of the operations from one on.
struct Known {
  uint64_t last = 0;         // entered
  uint64_t last_result = 0;  // the results come in order
  bool counts_alike = true;  // the others number them as this rank does
};

bool HasResult(const format::CallResults& results) {
  return std::none_of(
      results.outputs.begin(), results.outputs.end(), [](const format::Tensor& tensor) {
        return tensor.payload == static_cast<uint32_t>(format::PayloadState::kAborted);
      });
}

Known ReadFrom(const format::RankReader& reader, uint32_t comm, uint64_t first) {
  Known known;
  const auto cursor = reader.EventsFromOp(comm, first);
  const auto kinds =
      format::KindBit(EventKind::kCallEnter) | format::KindBit(EventKind::kCallResults);
  while (const format::Event* event = cursor->NextOf(kinds)) {
    if (const auto* call = event->As<format::CallEnter>(); call != nullptr && call->comm == comm) {
      known.last = std::max(known.last, call->comm_seq);
      const api::ApiInfo* info = api::FindNccl(call->api);
      if (info != nullptr && info->klass == api::ApiClass::kP2p && call->comm_seq >= first)
        known.counts_alike = false;
    }
    const auto* results = event->As<format::CallResults>();
    if (results != nullptr && results->comm == comm && HasResult(*results))
      known.last_result = std::max(known.last_result, results->comm_seq);
  }
  return known;
}

}  // namespace

std::set<JobOperation> FindOthersResults(std::span<const format::RankReader* const> ranks,
                                         std::span<const RankComms> comms) {
  std::set<JobOperation> found;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankSummary summary = ReadRankSummary(*ranks[i]);
    if (summary.EndedWell()) continue;
    for (const auto& [number, comm] : summary.comms) {
      const auto key = comms[i].find(number + 1);
      if (key == comms[i].end() || comm.last_seq == 0) continue;
      const uint64_t first = comm.last_seq - std::min(comm.last_seq - 1, kMostUnderWay);
      const Known own = ReadFrom(*ranks[i], number + 1, first);
      if (own.last_result >= own.last || !own.counts_alike) continue;
      const uint64_t begun = std::max(own.last_result + 1, first);
      uint64_t others = 0;
      for (size_t j = 0; j < ranks.size(); ++j)
        for (const auto& [its_number, its_key] : comms[j])
          if (j != i && its_key == key->second)
            others = std::max(others, ReadFrom(*ranks[j], its_number, begun).last_result);
      for (uint64_t seq = begun; seq <= std::min(own.last, others); ++seq)
        found.emplace(key->second.first, key->second.second, seq);
    }
  }
  return found;
}

}  // namespace deja::cli
