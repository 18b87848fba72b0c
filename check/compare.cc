#include "check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/evidence/seen.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

// Something that a run computed or was given, and that the other run has in the same place.
struct Number {
  std::string what;  // "batch 3 of loader 0", "the input of AllReduce float32[8] sum #9 of comm 0"
  uint64_t value = 0;
  uint32_t site = kNoSite;
  uint64_t time_ns = 0;
};

using Numbers = std::map<std::tuple<int, uint64_t, uint64_t, uint64_t>, Number>;

// Kinds of numbers, those first that others follow from at one time.
enum Order : int { kBatch, kGenerator, kWeights, kGradients, kCallInput, kCallOutput };

// `generators`: names of those from which one of the runs draws.
Numbers NumbersOf(const Job& job, const RankSummary& rank,
                  const std::set<std::string>& generators) {
  Numbers numbers;
  for (const BatchSeen& batch : rank.seen.batches)
    if (batch.digest != kUnknownDigest)
      numbers[{kBatch, batch.loader, batch.pass, batch.batch}] = {
          fmt::format("batch {} of pass {} of loader {}", batch.batch, batch.pass + 1,
                      batch.loader),
          batch.digest, batch.at, batch.time_ns};
  std::map<std::string, uint64_t> counts;
  for (const GeneratorSeen& one : rank.seen.generators) {
    if (!generators.contains(one.name)) continue;
    numbers[{kGenerator, std::hash<std::string>{}(one.name), 0, ++counts[one.name]}] = {
        fmt::format("the state of {} at step {} of those that are seen", one.name,
                    counts[one.name]),
        one.digest, kNoSite, one.time_ns};
  }
  for (const OptimizerSeen& one : rank.seen.optimizers) {
    const auto add = [&](Order order, const char* what, uint64_t value) {
      if (value != kUnknownDigest)
        numbers[{order, one.optimizer, 0, one.step}] = {
            fmt::format("{} before step {} of optimizer {}", what, one.step, one.optimizer), value,
            one.at, one.time_ns};
    };
    add(kWeights, "the parameters", one.weights);
    add(kGradients, "the gradients", one.gradients);
  }
  for (const CommSummary& comm : rank.comms) {
    for (const Call& call : comm.collectives) {
      const auto add = [&](Order order, const char* what, uint64_t value, uint64_t time) {
        if (value != 0 && !call.Is(kRepeated))
          numbers[{order, comm.number, 0, call.seq}] = {
              fmt::format("the {} of {} #{} of comm {}", what, job.SignatureText(call), call.seq,
                          comm.number),
              value, call.site, time};
      };
      add(kCallInput, "input", call.input, call.time_ns);
      add(kCallOutput, "result", call.output, call.time_ns + call.lasted_us * uint64_t{1000});
    }
  }
  return numbers;
}

struct Difference {
  uint32_t rank = 0;
  const RankSummary* in_a = nullptr;
  const RankSummary* in_b = nullptr;
  int order = 0;
  Number of_a;
  Number of_b;
};

std::optional<Difference> FirstDifference(const Job& a, const Job& b) {
  std::optional<Difference> first;
  for (const RankSummary& of_a : a.ranks) {
    const auto of_b = std::find_if(b.ranks.begin(), b.ranks.end(),
                                   [&](const RankSummary& rank) { return rank.rank == of_a.rank; });
    if (of_b == b.ranks.end()) continue;
    std::set<std::string> generators = UsedGenerators(of_a.seen.generators);
    generators.merge(UsedGenerators(of_b->seen.generators));
    const Numbers numbers_a = NumbersOf(a, of_a, generators);
    const Numbers numbers_b = NumbersOf(b, *of_b, generators);
    for (const auto& [key, number] : numbers_a) {
      const auto other = numbers_b.find(key);
      if (other == numbers_b.end() || other->second.value == number.value) continue;
      if (first && std::pair(first->of_a.time_ns, first->order) <=
                       std::pair(number.time_ns, std::get<0>(key)))
        continue;
      first = Difference{of_a.rank, &of_a, &*of_b, std::get<0>(key), number, other->second};
    }
  }
  return first;
}

// What a rank read, the n-th time of each name.
std::map<std::tuple<InputKind, std::string, size_t>, const InputSeen*> ReadsUntil(
    const RankSummary& rank, uint64_t time_ns) {
  std::map<std::tuple<InputKind, std::string, size_t>, const InputSeen*> reads;
  std::map<std::pair<InputKind, std::string>, size_t> counts;
  for (const InputSeen& input : rank.seen.inputs) {
    const bool tells = input.kind != InputKind::kClock && input.kind != InputKind::kStore &&
                       input.kind != InputKind::kCaught;
    if (tells && input.time_ns <= time_ns)
      reads[{input.kind, input.name, counts[{input.kind, input.name}]++}] = &input;
  }
  return reads;
}

// Inputs of the rank that differ before the number does. The machine and the files come first;
// entropy, which every run has its own of, comes last.
std::vector<std::string> InputsBefore(const Difference& difference) {
  std::vector<std::string> texts;
  std::map<std::string, std::string> ground(difference.in_b->surroundings.begin(),
                                            difference.in_b->surroundings.end());
  for (const auto& [name, value] : difference.in_a->surroundings) {
    const auto other = ground.find(name);
    if (other != ground.end() && other->second != value)
      texts.push_back(fmt::format("{} is {} in the first run and {} in the second", name, value,
                                  other->second));
  }
  const std::set<std::pair<std::string, std::string>> in_a(difference.in_a->surroundings.begin(),
                                                           difference.in_a->surroundings.end());
  for (const auto& [name, value] : difference.in_a->surroundings)
    if (name.rfind("environment ", 0) == 0 && ground.count(name) == 0)
      texts.push_back(
          fmt::format("{} is {} in the first run and not set in the second", name, value));
  std::set<std::string> names_of_a;
  for (const auto& [name, value] : difference.in_a->surroundings) names_of_a.insert(name);
  for (const auto& [name, value] : difference.in_b->surroundings)
    if (name.rfind("environment ", 0) == 0 && names_of_a.count(name) == 0)
      texts.push_back(
          fmt::format("{} is not set in the first run and {} in the second", name, value));
  const auto of_a = ReadsUntil(*difference.in_a, difference.of_a.time_ns);
  const auto of_b = ReadsUntil(*difference.in_b, difference.of_b.time_ns);
  std::set<std::string> said;
  for (const bool entropy : {false, true}) {
    for (const auto& [key, input] : of_a) {
      if ((std::get<0>(key) == InputKind::kEntropy) != entropy) continue;
      const auto other = of_b.find(key);
      if (other == of_b.end() || other->second->value == input->value) continue;
      const std::string& name = std::get<1>(key);
      if (!said.insert(name).second) continue;
      const char* what = std::get<0>(key) == InputKind::kFolder ? "the order or the names in folder"
                         : std::get<0>(key) == InputKind::kEntropy ? "what it drew by"
                                                                   : "the file";
      texts.push_back(
          fmt::format("{} {} differs: {} and {}", what, name, input->shown, other->second->shown));
    }
    if (!texts.empty()) break;
  }
  return texts;
}

}  // namespace

Report CompareRuns(const Job& a, const Job& b) {
  Report report;
  const std::optional<Difference> difference = FirstDifference(a, b);
  if (!difference) {
    report.notes.push_back("all numbers that both runs have are the same");
    return report;
  }
  Finding finding;
  finding.kind = Kind::kInput;
  finding.blamed = {difference->rank};
  finding.time_ns = difference->of_a.time_ns;
  const std::vector<std::string> inputs = InputsBefore(*difference);
  finding.sentence = fmt::format(
      "the first number that differs between the runs is {} of rank {}{}: {}",
      difference->of_a.what, difference->rank, a.AtSite(difference->of_a.site),
      inputs.empty() ? (difference->order == kCallOutput
                            ? "its inputs are the same, so the operation has added them otherwise"
                            : "no input that is recorded differs before it")
                     : inputs.front());
  for (size_t i = 1; i < inputs.size() && i < 6; ++i) finding.evidence.push_back(inputs[i]);
  finding.evidence.push_back(fmt::format("{:016x} in the first run, {:016x} in the second",
                                         difference->of_a.value, difference->of_b.value));
  Side side;
  side.ranks = finding.blamed;
  side.what = difference->of_a.what;
  side.site = a.sites[difference->of_a.site];
  finding.sides = {side};
  side.site = b.sites[difference->of_b.site];
  side.what += " in the second run";
  finding.sides.push_back(side);
  finding.next = {fmt::format("show RUN --rank {} --last 20 --stacks", difference->rank),
                  ReplayCommand(difference->rank)};
  report.findings.push_back(std::move(finding));
  return report;
}

}  // namespace deja::check
