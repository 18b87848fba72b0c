#include "cli/diff/diff_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/events/event_json.h"
#include "cli/events/event_text.h"
#include "cli/events/event_words.h"
#include "cli/help/option_list.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/summaries/replay_summary.h"
#include "common/text/hex_text.h"

namespace deja::cli {
namespace {

// Elements that are further apart have nothing to do with each other.
constexpr uint64_t kMaxUlps = 1 << 20;

std::string Number(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", HumanCount(count), what, count == 1 ? "" : "s");
}

std::string Joined(const std::vector<uint32_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ", "));
}

// "A  step 17, 2.41 s: float32[25632] 6f3a…21 min -0.2 max 0.4"
std::string PlaceText(const char* side, const std::optional<DiffPlace>& place,
                      const Difference& difference) {
  if (!place) return fmt::format("  {}  does not reach it", side);
  std::string text = fmt::format("  {}  ", side);
  if (place->step) text += fmt::format("step {}, ", *place->step);
  text += fmt::format("{:.6f} s", place->seconds);
  if (place->thread != "0") text += fmt::format(", thread {}", place->thread);
  if (place->tensor) return text + ": " + DescribeTensor(*place->tensor);
  if (difference.kind == DiffKind::kMissing) return text;
  return text + ":" + (place->arguments.substr(0, 1) == " " ? "" : " ") + place->arguments;
}

std::string ElementText(const Difference& difference) {
  const digest::ElementDifference& element = difference.element;
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

// "B is a replay of A, from the checkpoint of step 40: what came before is not compared"
void NoteReplay(const char* side, const format::ReplayOrigin& replay, const char* other_side,
                const format::RankReader& other, std::vector<std::string>& notes) {
  const bool of_other = replay.job_id == HexText(other.header().job_id);
  std::string text =
      fmt::format("{} is a replay of {}", side, of_other ? std::string(other_side) : replay.trace);
  if (replay.from_step)
    text += fmt::format(
        ", from the checkpoint of step {}: the steps between the first one and that one are not "
        "compared",
        *replay.from_step);
  if (replay.ended_ns)
    text += fmt::format("{} it ended where it was asked to; the rest is not compared",
                        replay.from_step ? ";" : ":");
  notes.push_back(std::move(text));
}

nlohmann::json PlaceJson(const std::optional<DiffPlace>& place) {
  if (!place) return nullptr;
  nlohmann::json json = {{"seconds", place->seconds}, {"thread", place->thread}};
  if (place->step) json["step"] = *place->step;
  if (!place->arguments.empty()) json["arguments"] = place->arguments;
  if (place->tensor) json["tensor"] = TensorToJson(*place->tensor);
  return json;
}

}  // namespace

void DiffChoices::AddTo(CLI::App& app) {
  app.add_option("--ignore", ignored,
                 "Leave out snapshots with such names, which are meant to differ, e.g. '*rng' "
                 "(repeatable)");
  AddBinariesOption(app, binaries);
}

Result<std::vector<uint32_t>> RanksOfBoth(const format::Trace& a, const format::Trace& b) {
  const std::vector<uint32_t> in_a = RankNumbers(a);
  const std::vector<uint32_t> in_b = RankNumbers(b);
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
                             const DiffOptions& options) {
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader_a, a.Rank(rank_a));
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader_b, b.Rank(rank_b));
  Compared compared;
  compared.rank_a = rank_a;
  compared.rank_b = rank_b;
  compared.summary_a = ReadRankSummary(*reader_a);
  compared.summary_b = ReadRankSummary(*reader_b);
  compared.replay_a = format::ReadReplayOrigin(*reader_a);
  compared.replay_b = format::ReadReplayOrigin(*reader_b);
  compared.diff = CompareRecordings({reader_a, &compared.summary_a, compared.replay_a},
                                    {reader_b, &compared.summary_b, compared.replay_b}, options);
  if (compared.replay_a) NoteReplay("A", *compared.replay_a, "B", *reader_b, compared.notes);
  if (compared.replay_b) NoteReplay("B", *compared.replay_b, "A", *reader_a, compared.notes);
  if (!options.between_ranks) compared.job = JobDifferences(reader_a->header(), reader_b->header());
  return compared;
}

void SortByCause(std::vector<Compared>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Compared& one, const Compared& other) {
    if (!one.diff.first || !other.diff.first) return one.diff.first && !other.diff.first;
    const DiffPlace& a = one.diff.first->place();
    const DiffPlace& b = other.diff.first->place();
    return std::pair(a.step, a.wall_ns) < std::pair(b.step, b.wall_ns);
  });
}

void PrintCompared(const Compared& compared, bool between_ranks, Symbolizer& symbolizer) {
  std::string who = between_ranks ? fmt::format("ranks {} and {}", compared.rank_a, compared.rank_b)
                                  : fmt::format("rank {}", compared.rank_a);
  const RankDiff& diff = compared.diff;
  for (const std::string& note : compared.notes) PrintLine(fmt::format("{}: {}", who, note));
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
  const RankSummary& summary = in_a ? compared.summary_a : compared.summary_b;
  const auto stack = summary.stacks.find(in_a ? first.a->stack : first.b->stack);
  if (stack != summary.stacks.end())
    if (const auto frame = summary.ProgramFrame(symbolizer, stack->second, false))
      PrintLine(fmt::format("  at {}", frame->Describe()));
  if (diff.entropy && diff.entropy->seconds < first.place().seconds)
    PrintLine(fmt::format("  before it, at {:.6f} s, {} #{} of thread {} gave other random bytes",
                          diff.entropy->seconds, diff.entropy->call, diff.entropy->count,
                          diff.entropy->thread));
}

nlohmann::json ToJson(const Compared& compared) {
  const RankDiff& diff = compared.diff;
  nlohmann::json json = {{"rank", compared.rank_a},     {"with_rank", compared.rank_b},
                         {"equal", !diff.first},        {"operations", diff.operations},
                         {"snapshots", diff.snapshots}, {"digests", diff.tensors}};
  if (compared.replay_a) json["replay_a"] = ToJson(*compared.replay_a);
  if (compared.replay_b) json["replay_b"] = ToJson(*compared.replay_b);
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

}  // namespace deja::cli
