#include "cli/summaries/job_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/events/comm_names.h"

namespace deja::cli {
namespace {

// "rank 2", "ranks 0 and 3", "ranks 0, 1 and 3"
std::string RankList(const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

Standing StandingOf(const RankOfJob& rank, const CommSummary& comm, Symbolizer& symbolizer) {
  Standing standing{rank.rank, comm.last_seq, false, "", ""};
  for (const CallSummary& call : rank.summary->open_calls)
    if (call.comm == comm.number && call.comm_seq == comm.last_seq) standing.inside = true;
  if (comm.last_call) {
    standing.last_call = comm.last_call->name;
    auto stack = rank.summary->stacks.find(comm.last_call->stack);
    if (stack != rank.summary->stacks.end())
      if (auto frame = rank.summary->ProgramFrame(symbolizer, stack->second, false))
        standing.place = frame->python ? frame->Describe() : frame->Place();
  }
  return standing;
}

}  // namespace

std::vector<CommStanding> UnevenComms(const std::vector<RankOfJob>& ranks, Symbolizer& symbolizer) {
  CommNames names;
  for (const RankOfJob& rank : ranks)
    for (const auto& [number, comm] : rank.summary->comms) names.Add(comm.hash, comm.joined_as);
  std::map<uint64_t, CommStanding> by_hash;
  for (const RankOfJob& rank : ranks) {
    for (const auto& [number, comm] : rank.summary->comms) {
      const uint64_t hash = names.Of(comm.hash);
      CommStanding& all = by_hash[hash];
      if (all.ranks.empty()) {
        all.hash = hash;
        all.comm = number;
      }
      all.ranks.push_back(StandingOf(rank, comm, symbolizer));
      if (comm.last_seq >= all.last_seq && !all.ranks.back().last_call.empty()) {
        all.last_seq = comm.last_seq;
        all.last_call = all.ranks.back().last_call;
      }
    }
  }
  std::vector<CommStanding> uneven;
  for (auto& entry : by_hash) {
    CommStanding& comm = entry.second;
    bool differs = std::any_of(comm.ranks.begin(), comm.ranks.end(), [&](const Standing& s) {
      return s.inside || s.last_seq != comm.last_seq;
    });
    if (differs) uneven.push_back(std::move(comm));
  }
  std::sort(uneven.begin(), uneven.end(),
            [](const auto& a, const auto& b) { return a.comm < b.comm; });
  return uneven;
}

std::string CommStanding::Describe() const {
  std::vector<uint32_t> inside;
  std::vector<uint32_t> left;
  std::vector<const Standing*> behind;
  for (const Standing& standing : ranks) {
    if (standing.last_seq != last_seq) {
      behind.push_back(&standing);
    } else {
      (standing.inside ? inside : left).push_back(standing.rank);
    }
  }
  std::vector<std::string> parts;
  if (!inside.empty())
    parts.push_back(
        fmt::format("{} entered {} #{} and never left", RankList(inside), last_call, last_seq));
  if (!left.empty())
    parts.push_back(inside.empty()
                        ? fmt::format("{} reached {} #{}", RankList(left), last_call, last_seq)
                        : fmt::format("{} left it", RankList(left)));
  for (const Standing* standing : behind) {
    std::string state = standing->inside ? "is still in" : "never entered it: its last was";
    std::string place = standing->place.empty() ? "" : " at " + standing->place;
    std::string call = standing->last_seq == 0
                           ? "nothing"
                           : fmt::format("{} #{}", standing->last_call, standing->last_seq);
    parts.push_back(fmt::format("rank {} {} {}{}", standing->rank, state, call, place));
  }
  std::string text = fmt::format("comm {}: ", comm);
  for (size_t i = 0; i < parts.size(); ++i) text += (i > 0 ? "; " : "") + parts[i];
  return text;
}

nlohmann::json ToJson(const CommStanding& comm) {
  nlohmann::json json = {{"hash", fmt::format("{:016x}", comm.hash)},
                         {"comm", comm.comm},
                         {"last_operation", comm.last_seq},
                         {"last_call", comm.last_call},
                         {"ranks", nlohmann::json::array()}};
  for (const Standing& s : comm.ranks)
    json["ranks"].push_back({{"rank", s.rank},
                             {"last_operation", s.last_seq},
                             {"inside", s.inside},
                             {"last_call", s.last_call},
                             {"at", s.place}});
  return json;
}

}  // namespace deja::cli
