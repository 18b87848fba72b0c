// deja bisect: the one place where a job first became another one, and how to replay what led to
// it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/command.h"
#include "cli/diff/diff_report.h"
#include "cli/help/option_list.h"
#include "cli/number_range.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/replay/bounds/checkpoint_choice.h"
#include "cli/summaries/trace_damage.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct BisectOptions {
  std::string a;
  std::string b;
  std::vector<std::string> ranks;
  DiffChoices choices;
};
BisectOptions g_bisect_options;

void AddBisectOptions(CLI::App& app) {
  AddTraceArgument(app, "A", g_bisect_options.a);
  app.add_option("B", g_bisect_options.b,
                 "A trace of the same job, or of a replay (deja replay --out)");
  app.add_option("--ranks", g_bisect_options.ranks,
                 "Only these ranks, e.g. 2 or 0-3,7; without B: ranks of A that should agree in "
                 "results of all-reduce, all-gather and broadcast, and in snapshots")
      ->delimiter(',')
      ->allow_extra_args(false);
  g_bisect_options.choices.AddTo(app);
}

// How a side's way to the difference can be run again.
struct Way {
  const char* side = "";
  std::string command;
  std::optional<uint64_t> checkpoint;      // step of the one that it starts from
  std::string why;                         // there is no command, or no checkpoint
  std::vector<DamagedCheckpoint> damaged;  // later ones that are of no use
};

std::string Quoted(const std::string& word) {
  constexpr const char* kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Result<Way> FindWay(const char* side, format::Trace& trace, uint32_t rank, const DiffPlace& place) {
  Way way;
  way.side = side;
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank));
  if (reader->header().level != static_cast<uint32_t>(Level::kFull)) {
    way.why = "it keeps no results of collectives to replay it with";
    return way;
  }
  way.command = fmt::format("deja replay {} --rank {} --gdb", Quoted(trace.path()), rank);
  std::optional<ReplayStart> start;
  if (place.step) {
    DEJA_ASSIGN_OR_RETURN(SoundStart found,
                          FindSoundStart(trace, *place.step, {rank}, -1, way.why));
    start = std::move(found.start);
    way.damaged = std::move(found.damaged);
  } else {
    way.why = "it is before the first step";
  }
  if (start) {
    way.checkpoint = start->step;
    way.why.clear();
    way.command += fmt::format(" --from-step {}", start->step);
  }
  if (place.comm)
    way.command += fmt::format(" --until-seq {} --comm {}", place.comm_seq, *place.comm);
  else if (place.step)
    way.command += fmt::format(" --until-step {}", *place.step);
  return way;
}

// A replay is not replayed: what it is a replay of leads to the same place.
Result<Way> FindWayOf(const char* side, format::Trace& trace, uint32_t rank,
                      const std::optional<DiffPlace>& own, const DiffPlace& of_other) {
  if (own) return FindWay(side, trace, rank, *own);
  DiffPlace near = of_other;
  near.comm.reset();  // this one does not reach that operation, but reaches its step
  return FindWay(side, trace, rank, near);
}

Result<std::vector<Way>> FindWays(format::Trace& a, format::Trace& b, const Compared& first) {
  std::vector<Way> ways;
  const Difference& difference = *first.diff.first;
  const bool only_b = first.replay_a && !first.replay_b;
  const bool only_a = first.replay_b && !first.replay_a;
  if (!only_b && (difference.a || only_a)) {
    DEJA_ASSIGN_OR_RETURN(Way way,
                          FindWayOf("A", a, first.rank_a, difference.a, difference.place()));
    ways.push_back(std::move(way));
  }
  if (!only_a && (difference.b || only_b)) {
    DEJA_ASSIGN_OR_RETURN(Way way,
                          FindWayOf("B", b, first.rank_b, difference.b, difference.place()));
    ways.push_back(std::move(way));
  }
  return ways;
}

void PrintWay(const Way& way) {
  if (way.command.empty())
    return PrintLine(fmt::format("{}  cannot be replayed: {}", way.side, way.why));
  for (const DamagedCheckpoint& damaged : way.damaged)
    PrintLine(fmt::format("{}  {}", way.side, damaged.Text()));
  const std::string from = way.checkpoint
                               ? fmt::format("from the checkpoint of step {}", *way.checkpoint)
                               : fmt::format("from the start ({})", way.why);
  PrintLine(fmt::format("{}  {}:", way.side, from));
  PrintLine("   " + way.command);
}

nlohmann::json ToJson(const Way& way) {
  nlohmann::json json = {{"side", way.side}};
  if (!way.command.empty()) json["command"] = way.command;
  if (way.checkpoint) json["checkpoint_step"] = *way.checkpoint;
  if (!way.why.empty()) json["why"] = way.why;
  for (const DamagedCheckpoint& damaged : way.damaged)
    json["damaged_checkpoints"].push_back({{"step", damaged.step}, {"what", damaged.what}});
  return json;
}

// "differ later: ranks 0, 1"
void PrintOthers(const std::vector<Compared>& all, bool between_ranks) {
  std::vector<uint32_t> later;
  std::vector<uint32_t> equal;
  for (size_t i = 1; i < all.size(); ++i)
    (all[i].diff.first ? later : equal).push_back(between_ranks ? all[i].rank_b : all[i].rank_a);
  std::sort(later.begin(), later.end());
  std::sort(equal.begin(), equal.end());
  const auto say = [](const std::vector<uint32_t>& ranks, const char* what) {
    constexpr size_t kShown = 16;
    if (ranks.empty()) return;
    const auto shown = std::vector(
        ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), kShown)));
    PrintLine(fmt::format("{}: rank{} {}{}", what, ranks.size() == 1 ? "" : "s",
                          fmt::join(shown, ", "),
                          ranks.size() > kShown ? fmt::format(" and {} more", ranks.size() - kShown)
                                                : std::string()));
  };
  say(later, "differ later");
  say(equal, "equal");
}

struct Pair {
  uint32_t a = 0;
  uint32_t b = 0;
};

Result<std::vector<Pair>> ChoosePairs(const format::Trace& a, const format::Trace& b,
                                      bool between_ranks) {
  std::vector<Pair> pairs;
  DEJA_ASSIGN_OR_RETURN(std::vector<uint32_t> ranks, ParseRanks(g_bisect_options.ranks));
  if (between_ranks) {
    for (size_t i = 1; i < ranks.size(); ++i) pairs.push_back({ranks[0], ranks[i]});
    if (pairs.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "comparing: there is nothing to compare with; give another trace, or --ranks "
                  "with two or more ranks that should agree");
    return pairs;
  }
  if (ranks.empty()) {
    DEJA_ASSIGN_OR_RETURN(ranks, RanksOfBoth(a, b));
  }
  for (const uint32_t rank : ranks) pairs.push_back({rank, rank});
  return pairs;
}

Result<std::vector<Compared>> CompareAll(format::Trace& a, format::Trace& b,
                                         const std::vector<Pair>& pairs, bool between_ranks) {
  std::vector<Compared> all;
  Progress progress("comparing ranks", ProgressUnit::kRanks);
  for (const Pair& pair : pairs) {
    DEJA_ASSIGN_OR_RETURN(
        Compared compared,
        ComparePair(a, b, pair.a, pair.b, {between_ranks, g_bisect_options.choices.ignored}));
    all.push_back(std::move(compared));
    progress.Update(all.size(), pairs.size());
  }
  SortByCause(all);
  return all;
}

int RunBisect(const Context& context) {
  const bool between_ranks = g_bisect_options.b.empty();
  auto a = OpenTrace(g_bisect_options.a);
  if (!a) return FailWith(a.error());
  auto b = OpenTrace(between_ranks ? g_bisect_options.a : g_bisect_options.b);
  if (!b) return FailWith(b.error());
  auto pairs = ChoosePairs(**a, **b, between_ranks);
  if (!pairs) {
    Diagnose(pairs.error().message);
    return pairs.error().code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  const bool damaged = SayIfDamaged(**a, **b);
  const int different = damaged ? kExitDataLoss : kExitDiverged;
  const int equal = damaged ? kExitDataLoss : kExitOk;
  auto all = CompareAll(**a, **b, *pairs, between_ranks);
  if (!all) return FailWith(all.error());
  const Compared& first = all->front();
  std::vector<Way> ways;
  if (first.diff.first) {
    auto found = FindWays(**a, **b, first);
    if (!found) return FailWith(found.error());
    ways = std::move(*found);
  }
  if (context.json) {
    nlohmann::json json = {{"a", (*a)->path()},
                           {"b", (*b)->path()},
                           {"equal", !first.diff.first},
                           {"job_differences", first.job}};
    if (first.diff.first) json["first"] = ToJson(first);
    json["replays"] = nlohmann::json::array();
    for (const Way& way : ways) json["replays"].push_back(ToJson(way));
    PrintJson(json);
    return first.diff.first ? different : equal;
  }
  Symbolizer symbolizer;
  for (const std::string& directory : g_bisect_options.choices.binaries)
    symbolizer.AddDirectory(directory);
  for (const std::string& difference : first.job) PrintLine("not the same job: " + difference);
  if (!first.diff.first) {
    for (const Compared& one : *all) PrintCompared(one, between_ranks, symbolizer);
    return equal;
  }
  PrintCompared(first, between_ranks, symbolizer);
  if (between_ranks && first.diff.first->kind == DiffKind::kSnapshot)
    PrintLine(
        fmt::format("if that is meant to differ: --ignore {}", Quoted(first.diff.first->snapshot)));
  PrintOthers(*all, between_ranks);
  for (const Way& way : ways) PrintWay(way);
  return different;
}

}  // namespace

extern const Command kBisectCommand;
const Command kBisectCommand = {
    "bisect",
    "Find where two runs of a job, a run and its replay, or ranks first differ, and "
    "how to replay to there; exit 4 if they do",
    "  deja bisect monday.deja tuesday.deja      the first difference of all ranks\n"
    "  deja bisect run.deja again.deja           a replay's own trace: deja replay --out\n"
    "  deja bisect run.deja --ranks 0-3          of ranks that should agree\n"
    "  deja bisect run.deja --ranks 0-3 --ignore '*rng' --ignore loss\n",
    false,
    AddBisectOptions,
    RunBisect,
};

}  // namespace deja::cli
