#include "check/evidence/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace deja::check {
namespace {

// The n-th communicator of a rank with this hash and size, in this place. Programs use an id again,
// and a process may have several ranks of one communicator.
using Occurrences = std::map<std::tuple<uint64_t, uint32_t, uint32_t>, uint32_t>;

}  // namespace

std::string RangesText(std::span<const uint32_t> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text +=
        end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string RanksText(std::span<const uint32_t> ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + RangesText(ranks);
}

Job::Job(std::vector<RankSummary> summaries) : ranks(std::move(summaries)) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankSummary& a, const RankSummary& b) { return a.rank < b.rank; });
  for (const RankSummary& rank : ranks) last_time_ns = std::max(last_time_ns, rank.last_time_ns);
  TakeNumbers();
  FindCommunicators();
}

void Job::TakeNumbers() {
  std::map<Signature, uint32_t> signature_numbers;
  std::map<Site, uint32_t> site_numbers = {{Site{}, kNoSite}};
  sites = {Site{}};
  std::map<std::string, uint32_t> name_numbers = {{"", 0}};
  names = {""};
  for (RankSummary& rank : ranks) {
    std::vector<uint32_t> new_signatures;
    for (const Signature& signature : rank.signatures) {
      const auto [it, added] =
          signature_numbers.try_emplace(signature, static_cast<uint32_t>(signatures.size()));
      if (added) signatures.push_back(signature);
      new_signatures.push_back(it->second);
    }
    std::vector<uint32_t> new_sites;
    for (const Site& site : rank.sites) {
      const auto [it, added] = site_numbers.try_emplace(site, static_cast<uint32_t>(sites.size()));
      if (added) sites.push_back(site);
      new_sites.push_back(it->second);
    }
    std::vector<uint32_t> new_names;
    for (const std::string& name : rank.names) {
      const auto [it, added] = name_numbers.try_emplace(name, static_cast<uint32_t>(names.size()));
      if (added) names.push_back(name);
      new_names.push_back(it->second);
    }
    const auto renumber = [&](Call& call) {
      call.names = new_names[call.names];
      call.signature = new_signatures[call.signature];
      call.site = new_sites[call.site];
    };
    for (CommSummary& comm : rank.comms) {
      comm.collectives.ForEachOwn(renumber);
      std::for_each(comm.transfers.begin(), comm.transfers.end(), renumber);
    }
    for (OpenCall& call : rank.open) call.site = new_sites[call.site];
    rank.end.site = new_sites[rank.end.site];
    rank.last_site = new_sites[rank.last_site];
    rank.seen.ForEachSite([&](uint32_t& site) { site = new_sites[site]; });
    rank.signatures.clear();
    rank.sites.clear();
    rank.names.clear();
  }
}

void Job::FindCommunicators() {
  std::map<uint64_t, uint64_t> old_hashes;  // of ranks that have joined a grown one
  for (const RankSummary& rank : ranks)
    for (const CommSummary& comm : rank.comms)
      if (comm.joined_as != 0) old_hashes[comm.joined_as] = comm.hash;
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, Communicator> found;
  for (size_t r = 0; r < ranks.size(); ++r) {
    Occurrences occurrences;
    for (size_t c = 0; c < ranks[r].comms.size(); ++c) {
      const CommSummary& comm = ranks[r].comms[c];
      const auto old = old_hashes.find(comm.hash);
      const uint64_t hash = old == old_hashes.end() ? comm.hash : old->second;
      const uint32_t occurrence = occurrences[{hash, comm.nranks, comm.rank}]++;
      Communicator& communicator = found[{hash, comm.nranks, occurrence}];
      communicator.nranks = comm.nranks;
      if (communicator.name.empty()) communicator.name = comm.name;
      communicator.members.push_back({r, c});
    }
  }
  for (auto& [key, communicator] : found) {
    std::vector<Member>& members = communicator.members;
    std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
      return CommOf(a).rank < CommOf(b).rank;
    });
    const auto same = std::adjacent_find(
        members.begin(), members.end(),
        [&](const Member& a, const Member& b) { return CommOf(a).rank == CommOf(b).rank; });
    communicator.is_ambiguous = same != members.end();
    communicators.push_back(std::move(communicator));
  }
  std::stable_sort(communicators.begin(), communicators.end(),
                   [&](const Communicator& a, const Communicator& b) {
                     const Member& first = a.members.front();
                     const Member& second = b.members.front();
                     return std::pair(CommOf(first).number, first.rank) <
                            std::pair(CommOf(second).number, second.rank);
                   });
}

std::vector<uint32_t> Job::RanksOf(const Communicator& communicator) const {
  std::set<uint32_t> numbers;
  for (const Member& member : communicator.members) numbers.insert(NumberOf(member));
  return {numbers.begin(), numbers.end()};
}

std::string Job::NameOf(const Communicator& communicator) const {
  const std::vector<uint32_t> numbers = RanksOf(communicator);
  const std::string name = fmt::format("comm {}", CommOf(communicator.members.front()).number);
  return numbers.size() == ranks.size() ? name : fmt::format("{} of {}", name, RanksText(numbers));
}

bool Job::IsSameLine(uint32_t site, uint32_t other) const {
  if (site == other) return true;
  return !sites[site].empty() && !sites[other].empty() &&
         sites[site].front() == sites[other].front();
}

std::string Job::AtSite(uint32_t site) const {
  const std::string text = Describe(sites[site]);
  return text.empty() ? "" : " at " + text;
}

}  // namespace deja::check
