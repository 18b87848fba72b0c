// deja diff: where two recordings differ first.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/command.h"
#include "cli/event_json.h"
#include "cli/event_text.h"
#include "cli/event_words.h"
#include "cli/output.h"
#include "cli/trace_diff.h"
#include "format/trace.h"

namespace deja::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  int rank = -1;
  int with_rank = -1;
  std::vector<std::string> ignored;
  std::vector<std::string> binaries;
};
Options g_options;

// Elements that are further apart have nothing to do with each other.
constexpr uint64_t kMaxUlps = 1 << 20;

// One pair of ranks, compared.
struct Compared {
  uint32_t rank_a = 0;
  uint32_t rank_b = 0;
  RankStory story_a;
  RankStory story_b;
  RankDiff diff;
  std::vector<std::string> job;  // JobDifferences
};

std::vector<uint32_t> RanksOf(const format::Trace& trace) {
  std::set<uint32_t> ranks;
  for (const format::RankFolder& folder : trace.ranks()) ranks.insert(folder.rank);
  return {ranks.begin(), ranks.end()};
}

std::string Number(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", HumanCount(count), what, count == 1 ? "" : "s");
}

std::string Joined(const std::vector<uint32_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ", "));
}

// "A  step 17, 2.41 s: float32[25632] 6f3a…21 min -0.2 max 0.4"
std::string PlaceText(const char* side, const std::optional<DiffPlace>& place,
                      const Difference& difference) {
  if (!place) return fmt::format("  {}  does not come to it", side);
  std::string text = fmt::format("  {}  ", side);
  if (place->step) text += fmt::format("step {}, ", *place->step);
  text += fmt::format("{:.6f} s", place->seconds);
  if (place->thread != "0") text += fmt::format(", thread {}", place->thread);
  if (place->tensor) return text + ": " + DescribeTensor(*place->tensor);
  if (difference.kind == DiffKind::kMissing) return text;
  return text + ":" + (place->arguments.substr(0, 1) == " " ? "" : " ") + place->arguments;
}

std::string ElementText(const Difference& difference) {
  const preload::ElementDifference& element = difference.element;
  const format::Tensor& tensor = *difference.a->tensor;
  const bool raw = tensor.dtype == format::kRawBytes;
  std::string text =
      fmt::format("  first at {} {} of {}: {} in A, {} in B", raw ? "byte" : "element",
                  element.first, tensor.count, element.a, element.b);
  if (!raw && element.ulps <= kMaxUlps)
    text += fmt::format(", {} ULP apart", HumanCount(element.ulps));
  return text + fmt::format("; {} {}", HumanCount(element.different),
                            element.different == 1 ? "differs" : "differ");
}

std::string WhatDiffers(const Difference& difference) {
  switch (difference.kind) {
    case DiffKind::kMissing:
      return "only one of them has it";
    case DiffKind::kOperation:
      return "another operation has this number";
    case DiffKind::kArguments:
      return "other arguments";
    case DiffKind::kInput:
      return "its " + difference.tensor + " differs";
    case DiffKind::kResult:
      return "its " + difference.tensor + " differs, though this rank gave the same";
    case DiffKind::kSnapshot:
      return "it differs";
  }
  return "it differs";
}

void PrintRank(const Compared& compared, bool between_ranks, Symbolizer& symbolizer) {
  std::string who = between_ranks ? fmt::format("ranks {} and {}", compared.rank_a, compared.rank_b)
                                  : fmt::format("rank {}", compared.rank_a);
  const RankDiff& diff = compared.diff;
  if (!diff.first) {
    PrintLine(fmt::format("{}: equal: {}, {}, {}", who, Number(diff.operations, "operation"),
                          Number(diff.snapshots, "snapshot"),
                          Number(diff.tensors, "tensor digest")));
    return;
  }
  const Difference& first = *diff.first;
  std::string what = WhatDiffers(first);
  if (between_ranks && first.kind == DiffKind::kResult) what = "its result differs";
  PrintLine(fmt::format("{}: the first difference is {}: {}", who, first.what, what));
  PrintLine(PlaceText("A", first.a, first));
  PrintLine(PlaceText("B", first.b, first));
  if (first.element.found) PrintLine(ElementText(first));
  const bool in_a = first.a.has_value();
  const RankStory& story = in_a ? compared.story_a : compared.story_b;
  const auto stack = story.stacks.find(in_a ? first.a->stack : first.b->stack);
  if (stack != story.stacks.end())
    if (const auto frame = story.ProgramFrame(symbolizer, stack->second, false))
      PrintLine(fmt::format("  at {}", frame->Describe()));
  if (diff.entropy && diff.entropy->seconds < first.place().seconds)
    PrintLine(fmt::format("  before it, at {:.6f} s, {} #{} of thread {} gave other random bytes",
                          diff.entropy->seconds, diff.entropy->call, diff.entropy->count,
                          diff.entropy->thread));
}

// What is already said to differ before the programs began: not the same job.
std::vector<std::string> JobDifferences(const format::TraceHeader& a,
                                        const format::TraceHeader& b) {
  std::vector<std::string> differences;
  const auto add = [&](const char* what, const std::string& in_a, const std::string& in_b) {
    if (in_a != in_b) differences.push_back(fmt::format("{}: {} in A, {} in B", what, in_a, in_b));
  };
  const auto text = [](std::string_view view) { return std::string(view); };
  add("world size", std::to_string(a.world_size), std::to_string(b.world_size));
  if (a.process.executable_build_id != b.process.executable_build_id)
    differences.push_back("the program is another build of it");
  add("arguments", fmt::format("'{}'", fmt::join(a.process.argv, " ")),
      fmt::format("'{}'", fmt::join(b.process.argv, " ")));
  add("NCCL", std::to_string(a.process.nccl_version), std::to_string(b.process.nccl_version));
  add("processor", text(a.process.cpu_model), text(b.process.cpu_model));
  add("processors", std::to_string(a.process.cpu_count), std::to_string(b.process.cpu_count));
  return differences;
}

nlohmann::json PlaceJson(const std::optional<DiffPlace>& place) {
  if (!place) return nullptr;
  nlohmann::json json = {{"seconds", place->seconds}, {"thread", place->thread}};
  if (place->step) json["step"] = *place->step;
  if (!place->arguments.empty()) json["arguments"] = place->arguments;
  if (place->tensor) json["tensor"] = TensorToJson(*place->tensor);
  return json;
}

nlohmann::json RankJson(const Compared& compared) {
  const RankDiff& diff = compared.diff;
  nlohmann::json json = {{"rank", compared.rank_a},     {"with_rank", compared.rank_b},
                         {"equal", !diff.first},        {"operations", diff.operations},
                         {"snapshots", diff.snapshots}, {"digests", diff.tensors}};
  if (diff.entropy)
    json["entropy"] = {{"call", diff.entropy->call},
                       {"count", diff.entropy->count},
                       {"thread", diff.entropy->thread},
                       {"seconds", diff.entropy->seconds}};
  if (!diff.first) return json;
  const Difference& first = *diff.first;
  json["difference"] = {{"kind", DiffKindName(first.kind)},
                        {"what", first.what},
                        {"a", PlaceJson(first.a)},
                        {"b", PlaceJson(first.b)}};
  if (!first.tensor.empty()) json["difference"]["tensor"] = first.tensor;
  if (first.element.found) {
    json["difference"]["element"] = {{"index", first.element.first},
                                     {"a", first.element.a},
                                     {"b", first.element.b},
                                     {"different", first.element.different}};
    if (first.element.ulps != UINT64_MAX)
      json["difference"]["element"]["ulps"] = first.element.ulps;
  }
  return json;
}

void AddOptions(CLI::App& app) {
  app.add_option("A", g_options.a, "A trace directory or a bundle")->required();
  app.add_option("B", g_options.b, "Another one; A itself if two ranks of A are compared");
  auto* rank =
      app.add_option("--rank", g_options.rank, "Only this rank")->check(CLI::NonNegativeNumber);
  app.add_option("--with-rank", g_options.with_rank,
                 "Compare rank R of A with this rank: what all-reduce, all-gather and broadcast "
                 "left on both, and snapshots")
      ->check(CLI::NonNegativeNumber)
      ->needs(rank);
  app.add_option("--ignore", g_options.ignored,
                 "Leave out snapshots with such names, which are meant to differ, e.g. '*rng' "
                 "(repeatable)");
  app.add_option("--binaries", g_options.binaries,
                 "Folders with the program's binaries, if not where they ran");
}

// The ranks of A to be compared, and a word on those that only one of the traces has.
Result<std::vector<uint32_t>> ChosenRanks(const format::Trace& a, const format::Trace& b) {
  if (g_options.rank >= 0) return std::vector<uint32_t>{static_cast<uint32_t>(g_options.rank)};
  const std::vector<uint32_t> in_a = RanksOf(a);
  const std::vector<uint32_t> in_b = RanksOf(b);
  std::vector<uint32_t> both;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                        std::back_inserter(both));
  if (both.empty())
    return Fail(ErrorCode::kNotFound,
                fmt::format("comparing {} with {}: they have no rank in common; A has {}, B has {}",
                            a.path(), b.path(), Joined(in_a), Joined(in_b)));
  for (const auto& [ranks, other, path] :
       {std::tuple{&in_a, &in_b, &a.path()}, std::tuple{&in_b, &in_a, &b.path()}}) {
    std::vector<uint32_t> alone;
    std::set_difference(ranks->begin(), ranks->end(), other->begin(), other->end(),
                        std::back_inserter(alone));
    if (!alone.empty())
      Diagnose(fmt::format("only {} has rank {}: not compared", *path, Joined(alone)));
  }
  return both;
}

Result<Compared> ComparePair(format::Trace& a, format::Trace& b, uint32_t rank_a, uint32_t rank_b,
                             bool between_ranks) {
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader_a, a.Rank(rank_a));
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader_b, b.Rank(rank_b));
  Compared compared{rank_a, rank_b, ReadRankStory(*reader_a), ReadRankStory(*reader_b), {}, {}};
  compared.diff = CompareRecordings({reader_a, &compared.story_a}, {reader_b, &compared.story_b},
                                    {between_ranks, g_options.ignored});
  if (!between_ranks) compared.job = JobDifferences(reader_a->header(), reader_b->header());
  return compared;
}

int Run(const Context& context) {
  const bool between_ranks = g_options.with_rank >= 0;
  if (g_options.b.empty() && !between_ranks) {
    Diagnose("say with what to compare: another trace, or --rank R --with-rank S of this one");
    return kExitUsage;
  }
  auto a = format::Trace::Open(g_options.a);
  if (!a) return FailWith(a.error());
  auto b = format::Trace::Open(g_options.b.empty() ? g_options.a : g_options.b);
  if (!b) return FailWith(b.error());
  auto ranks = ChosenRanks(**a, **b);
  if (!ranks) return FailWith(ranks.error());

  std::vector<Compared> all;
  {
    Progress progress("comparing ranks");
    for (uint32_t rank : *ranks) {
      auto compared = ComparePair(**a, **b, rank,
                                  between_ranks ? static_cast<uint32_t>(g_options.with_rank) : rank,
                                  between_ranks);
      if (!compared) return FailWith(compared.error());
      all.push_back(std::move(*compared));
      progress.Update(all.size(), ranks->size());
    }
  }
  // What differs first comes first: it is nearer to the cause.
  std::stable_sort(all.begin(), all.end(), [](const Compared& one, const Compared& other) {
    if (!one.diff.first || !other.diff.first) return one.diff.first.has_value();
    return one.diff.first->place().wall_ns < other.diff.first->place().wall_ns;
  });
  const bool equal = std::none_of(all.begin(), all.end(),
                                  [](const Compared& one) { return one.diff.first.has_value(); });
  if (context.json) {
    nlohmann::json json = {{"a", (*a)->path()}, {"b", (*b)->path()}, {"equal", equal}};
    json["job_differences"] = all[0].job;
    json["ranks"] = nlohmann::json::array();
    for (const Compared& one : all) json["ranks"].push_back(RankJson(one));
    PrintJson(json);
  } else {
    Symbolizer symbolizer;
    for (const std::string& directory : g_options.binaries) symbolizer.AddDirectory(directory);
    for (const std::string& difference : all[0].job) PrintLine("not the same job: " + difference);
    for (const Compared& one : all) PrintRank(one, between_ranks, symbolizer);
  }
  return equal ? kExitOk : kExitDiverged;
}

}  // namespace

extern const Command kDiffCommand;
const Command kDiffCommand = {
    "diff",
    "Where two recordings of the same job, or two ranks, differ first; exit 4 if they do",
    "  deja diff monday.deja tuesday.deja              each rank with the same one of the other "
    "run\n"
    "  deja diff monday.deja tuesday.deja --rank 2\n"
    "  deja diff run.deja --rank 0 --with-rank 1       two ranks that should agree\n",
    false,
    AddOptions,
    Run,
};

}  // namespace deja::cli
