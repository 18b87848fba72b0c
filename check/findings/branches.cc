// Why ranks have parted: what they had read differently since the last event that they shared.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

using Reads = std::map<std::pair<InputKind, std::string>, const InputSeen*>;  // the last of each

bool CanPart(Kind kind) {
  switch (kind) {
    case Kind::kSignature:
    case Kind::kOrder:
    case Kind::kMissing:
    case Kind::kLeftEarly:
    case Kind::kOutside:
      return true;
    default:
      return false;
  }
}

const RankSummary* RankNumbered(const Job& job, uint32_t number) {
  const auto it = std::find_if(job.ranks.begin(), job.ranks.end(),
                               [&](const RankSummary& rank) { return rank.rank == number; });
  return it == job.ranks.end() ? nullptr : &*it;
}

Reads ReadsBetween(const RankSummary& rank, uint64_t begin, uint64_t end) {
  Reads reads;
  for (const InputSeen& input : rank.seen.inputs)
    if (input.time_ns >= begin && input.time_ns <= end) reads[{input.kind, input.name}] = &input;
  return reads;
}

const char* Verb(InputKind kind) {
  switch (kind) {
    case InputKind::kFile:
      return "read the file";
    case InputKind::kFolder:
      return "listed the folder";
    case InputKind::kLook:
      return "found";
    case InputKind::kStore:
      return "had from the store";
    case InputKind::kEntropy:
      return "drew from";
    case InputKind::kClock:
      return "read";
    case InputKind::kCaught:
      return "raised";
  }
  return "read";
}

// "3 ms", "2.5 s"
std::string DurationText(uint64_t ns) {
  constexpr double kNsOfMs = 1e6;
  constexpr double kNsOfSecond = 1e9;
  const auto value = static_cast<double>(ns);
  if (value < kNsOfSecond) return fmt::format("{:.0f} ms", value / kNsOfMs);
  return fmt::format("{:.1f} s", value / kNsOfSecond);
}

class Brancher {
 public:
  Brancher(const Job& job, Finding& finding) : job_(job), finding_(finding) {}

  void Add() {
    if (finding_.blamed.empty() || finding_.waiting.empty()) return;
    const RankSummary* a = RankNumbered(job_, finding_.blamed.front());
    const RankSummary* b = RankNumbered(job_, finding_.waiting.front());
    if (a == nullptr || b == nullptr) return;
    AddCaught(*a, *b);
    AddCaught(*b, *a);
    AddPasses(*a, *b);
    AddReads(*a, *b);
  }

 private:
  // From the last call that both made on, to the one that differs, or to the end.
  std::pair<uint64_t, uint64_t> WindowOf(const RankSummary& rank) const {
    uint64_t begin = 0;
    uint64_t end = rank.last_time_ns;
    if (finding_.agreed && finding_.number > 1)
      for (const CommSummary& comm : rank.comms) {
        if (finding_.comm.rfind(fmt::format("comm {}", comm.number), 0) != 0) continue;
        const size_t number = finding_.number - std::min(finding_.number, comm.left_out);
        if (number < 2 || comm.collectives.size() < number - 1) continue;
        begin = comm.collectives[number - 2].time_ns;
        if (comm.collectives.size() >= number) end = comm.collectives[number - 1].time_ns;
      }
    return {begin, end};
  }

  // Exceptions that one rank has caught and the other has not, the last ones before the difference.
  // A call that was left out may show many calls later, so also those before the last common call.
  void AddCaught(const RankSummary& a, const RankSummary& b) {
    constexpr size_t kShown = 2;
    const uint64_t end = WindowOf(a).second;
    const Reads of_b = ReadsBetween(b, 0, ~uint64_t{0});
    size_t shown = 0;
    for (auto input = a.seen.inputs.rbegin(); input != a.seen.inputs.rend(); ++input) {
      if (input->kind != InputKind::kCaught || input->time_ns > end || shown == kShown) continue;
      const auto other = of_b.find({input->kind, input->name});
      if (other != of_b.end() && other->second->shown == input->shown) continue;
      finding_.evidence.push_back(fmt::format("rank {} raised {}{}, {} before", a.rank, input->name,
                                              input->shown, DurationText(end - input->time_ns)));
      ++shown;
    }
  }

  void AddReads(const RankSummary& a, const RankSummary& b) {
    const auto [begin_a, end_a] = WindowOf(a);
    const auto [begin_b, end_b] = WindowOf(b);
    const Reads of_a = ReadsBetween(a, begin_a, end_a);
    const Reads of_b = ReadsBetween(b, begin_b, end_b);
    constexpr size_t kShown = 4;
    size_t shown = 0;
    for (const bool own : {false, true}) {
      // What they drew and what time it was before they had anything in common says nothing.
      if (own && (begin_a == 0 || begin_b == 0)) return;
      for (const auto& [key, input] : of_a) {
        if (key.first == InputKind::kCaught) continue;
        const bool is_own = key.first == InputKind::kClock || key.first == InputKind::kEntropy;
        if (is_own != own || shown == kShown) continue;
        const auto other = of_b.find(key);
        if (other == of_b.end() || other->second->value == input->value) continue;
        const char* as = key.first == InputKind::kLook ? "" : "as ";
        finding_.evidence.push_back(fmt::format("before it rank {} {} {} {}{}, rank {} {}{}",
                                                a.rank, Verb(key.first), key.second, as,
                                                input->shown, b.rank, as, other->second->shown));
        ++shown;
      }
      if (!own) AddOneSided(a, of_a, b, of_b, shown), AddOneSided(b, of_b, a, of_a, shown);
      // Each rank has its own clock and entropy: they say something where nothing else does.
      if (shown != 0) return;
    }
  }

  void AddOneSided(const RankSummary& a, const Reads& of_a, const RankSummary& b, const Reads& of_b,
                   size_t& shown) {
    constexpr size_t kShown = 4;
    for (const auto& [key, input] : of_a) {
      const bool tells = key.first == InputKind::kFile || key.first == InputKind::kFolder;
      if (!tells || shown == kShown || of_b.count(key) != 0) continue;
      finding_.evidence.push_back(fmt::format("before it rank {} {} {} ({}), rank {} did not",
                                              a.rank, Verb(key.first), key.second, input->shown,
                                              b.rank));
      ++shown;
    }
  }

  // Loaders that gave the ranks different numbers of batches.
  void AddPasses(const RankSummary& a, const RankSummary& b) {
    const auto count = [](const RankSummary& rank, uint32_t loader, uint64_t pass) {
      return static_cast<uint64_t>(std::count_if(
          rank.seen.batches.begin(), rank.seen.batches.end(),
          [&](const BatchSeen& batch) { return batch.loader == loader && batch.pass == pass; }));
    };
    for (const PassSeen& end : b.seen.passes) {
      const uint64_t of_a = count(a, end.loader, end.pass);
      if (of_a > end.batches)
        finding_.evidence.push_back(
            fmt::format("in pass {} the loader of rank {} gave {} batches, that of rank {} {}{}",
                        end.pass + 1, a.rank, of_a, b.rank, end.batches, job_.AtSite(end.at)));
    }
    for (const PassSeen& end : a.seen.passes) {
      const uint64_t of_b = count(b, end.loader, end.pass);
      if (of_b > end.batches)
        finding_.evidence.push_back(
            fmt::format("in pass {} the loader of rank {} gave {} batches, that of rank {} {}{}",
                        end.pass + 1, a.rank, end.batches, b.rank, of_b, job_.AtSite(end.at)));
    }
  }

  const Job& job_;
  Finding& finding_;
};

}  // namespace

void AddBranches(const Job& job, Found& found) {
  for (Finding& finding : found.findings)
    if (CanPart(finding.kind)) Brancher(job, finding).Add();
}

}  // namespace deja::check
