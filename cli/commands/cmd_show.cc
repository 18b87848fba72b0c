// deja show: the events of one rank, filtered.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "cli/command.h"
#include "cli/events/event_json.h"
#include "cli/events/event_text.h"
#include "cli/events/event_words.h"
#include "cli/events/rank_summary.h"
#include "cli/help/nearest_name.h"
#include "cli/help/option_list.h"
#include "cli/number_range.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "cli/summaries/trace_damage.h"
#include "cli/tensors/tensor_lookup.h"
#include "cli/tensors/tensor_text.h"
#include "digest/elements.h"
#include "format/tail/clock_run.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct ShowOptions {
  std::string trace;
  uint32_t rank = 0;
  int attempt = -1;
  std::string child;
  std::vector<std::string> kinds;
  std::vector<std::string> calls;
  std::string thread;
  int64_t comm = -1;
  std::string seq;
  std::string step;
  uint64_t first = 0;
  uint64_t last = 0;
  bool stacks = false;
  bool all = false;
  std::string tensor;
  int64_t beside = -1;
  std::string beside_trace;
  std::vector<std::string> binaries;
};
ShowOptions g_show_options;

struct Filter {
  std::set<std::string> kinds;
  std::set<std::string> calls;
  NumberRange seq;
  NumberRange step;

  static Result<Filter> Make() {
    Filter filter;
    filter.kinds.insert(g_show_options.kinds.begin(), g_show_options.kinds.end());
    filter.calls.insert(g_show_options.calls.begin(), g_show_options.calls.end());
    std::string known = ", " + KindNames() + ",";
    for (const std::string& kind : filter.kinds)
      if (known.find(", " + kind + ",") == std::string::npos)
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("showing: --kind {}: no such kind; the kinds are {}", kind, KindNames()));
    DEJA_ASSIGN_OR_RETURN(filter.seq, ParseRange("--seq", g_show_options.seq));
    DEJA_ASSIGN_OR_RETURN(filter.step, ParseRange("--step", g_show_options.step));
    return filter;
  }

  [[nodiscard]] bool Wants(const format::Event& event, const RankSummary& summary,
                           std::optional<uint64_t> now) const {
    std::string kind = KindName(event);
    // Definitions are noise in a listing of what happened; --all or naming the kind brings them.
    if (kinds.empty() && !g_show_options.all &&
        (kind == "module" || kind == "stack" || kind == "handle"))
      return false;
    if (!kinds.empty() && kinds.count(kind) == 0) return false;
    if (!g_show_options.thread.empty() && summary.ThreadName(event.thread) != g_show_options.thread)
      return false;
    if (!g_show_options.step.empty() && (!now || !step.Holds(*now))) return false;
    if (!calls.empty() && !IsWantedCall(event, summary)) return false;
    return IsOnWantedComm(event);
  }

  // Whether the batch may hold events that are wanted. `now`: the step in which it begins.
  [[nodiscard]] bool MayBeIn(const format::BatchInfo& batch, std::optional<uint64_t> now) const {
    if (!g_show_options.step.empty() && !(now && step.Holds(*now)) &&
        std::none_of(batch.steps.begin(), batch.steps.end(),
                     [&](uint64_t begun) { return step.Holds(begun); }))
      return false;
    if (g_show_options.seq.empty()) return true;
    return std::any_of(batch.comms.begin(), batch.comms.end(), [&](const auto& range) {
      return (g_show_options.comm < 0 || range.comm == g_show_options.comm + 1) &&
             range.first_seq <= seq.to && seq.from <= range.last_seq;
    });
  }

 private:
  [[nodiscard]] bool IsWantedCall(const format::Event& event, const RankSummary& summary) const {
    if (const auto* enter = event.As<format::CallEnter>())
      return calls.count(summary.ApiName(enter->api)) +
                 calls.count("nccl" + summary.ApiName(enter->api)) !=
             0;
    if (const auto* chosen = event.As<format::AlgorithmChosen>())
      return calls.count(summary.ApiName(chosen->api)) +
                 calls.count("nccl" + summary.ApiName(chosen->api)) !=
             0;
    if (const auto* input = event.As<format::Input>())
      return calls.count(summary.ApiName(input->api)) != 0;
    if (const auto* run = event.As<format::ClockRun>()) {
      bool wanted = false;
      format::ForEachReading(*run, [&](format::ClockSource source, int64_t) {
        const char* name = format::ClockSourceName(static_cast<uint32_t>(source));
        const std::string_view text = name == nullptr ? "" : name;
        wanted |= calls.count(std::string(text.substr(0, text.find('(')))) != 0;
      });
      return wanted;
    }
    return false;
  }

  [[nodiscard]] bool IsOnWantedComm(const format::Event& event) const {
    if (g_show_options.comm < 0 && g_show_options.seq.empty()) return true;
    uint32_t comm = 0;
    uint64_t comm_seq = 0;
    if (const auto* enter = event.As<format::CallEnter>()) {
      comm = enter->comm;
      comm_seq = enter->comm_seq;
    } else if (const auto* results = event.As<format::CallResults>()) {
      comm = results->comm;
      if (results->comm != 0) comm_seq = results->comm_seq;
    } else if (const auto* chosen = event.As<format::AlgorithmChosen>()) {
      comm = chosen->comm;
      comm_seq = chosen->comm_seq;
    } else if (const auto* created = event.As<format::CommCreated>()) {
      comm = created->comm;
    }
    if (comm == 0 || (g_show_options.comm >= 0 && comm - 1 != g_show_options.comm)) return false;
    return g_show_options.seq.empty() || (comm_seq != 0 && seq.Holds(comm_seq));
  }
};

class Lister {
 public:
  Lister(const RankSummary& summary, uint64_t start_ns, bool json)
      : summary_(summary), start_ns_(start_ns), json_(json) {
    for (const std::string& directory : g_show_options.binaries)
      symbolizer_.AddDirectory(directory);
  }

  void Add(const format::Event& event) {
    Lines lines = Render(event);
    if (g_show_options.last == 0) {
      Print(lines);
      ++printed_;
      return;
    }
    kept_.push_back(std::move(lines));
    if (kept_.size() > g_show_options.last) kept_.pop_front();
  }
  [[nodiscard]] bool Full() const {
    return g_show_options.first != 0 && printed_ >= g_show_options.first;
  }
  [[nodiscard]] size_t kept() const { return kept_.size(); }
  void Finish() {
    for (const Lines& lines : kept_) Print(lines);
  }

 private:
  struct Lines {
    std::vector<std::string> text;
    nlohmann::json json;  // instead
  };

  void Print(const Lines& lines) const {
    if (json_) return PrintJson(lines.json, -1);
    for (const std::string& line : lines.text) PrintLine(line);
  }

  Lines Render(const format::Event& event) {
    std::vector<SourceFrame> frames;
    if (g_show_options.stacks) frames = Frames(event);
    if (json_) {
      nlohmann::json json = EventToJson(event, summary_);
      for (const SourceFrame& f : frames)
        json["stack"].push_back({{"function", f.function},
                                 {"file", f.file},
                                 {"line", f.line},
                                 {"module", f.module},
                                 {"offset", f.offset}});
      return {{}, std::move(json)};
    }
    double seconds = (static_cast<double>(event.time_ns) - static_cast<double>(start_ns_)) * 1e-9;
    Lines lines;
    lines.text.push_back(fmt::format("{:>12.6f}  {:<6} {}", seconds,
                                     summary_.ThreadName(event.thread),
                                     DescribeEvent(event, summary_)));
    for (const SourceFrame& frame : frames)
      lines.text.push_back(fmt::format("{:>22}{}", "", frame.Describe()));
    return lines;
  }

  std::vector<SourceFrame> Frames(const format::Event& event) {
    if (const auto* crash = event.As<format::Crash>(); crash != nullptr && !crash->frames.empty())
      return summary_.Resolve(symbolizer_, {crash->frames.begin(), crash->frames.end()}, true);
    auto stack = summary_.stacks.find(StackOf(event));
    if (stack == summary_.stacks.end()) return {};
    return summary_.Resolve(symbolizer_, stack->second, false);
  }

  const RankSummary& summary_;
  uint64_t start_ns_;
  bool json_;
  Symbolizer symbolizer_;
  std::deque<Lines> kept_;
  uint64_t printed_ = 0;
};

// Lists the events of batches [from, end). Within a batch events stand thread by thread; time order
// is what a reader expects.
void List(const format::RankReader& reader, size_t from, const Filter& filter,
          const RankSummary& summary, Lister& lister) {
  std::optional<uint64_t> step;
  for (size_t i = 0; i < from; ++i)
    if (!reader.batches()[i].steps.empty()) step = reader.batches()[i].steps.back();
  std::vector<format::Event> events;
  for (size_t i = from; i < reader.batches().size() && !lister.Full(); ++i) {
    const format::BatchInfo& batch = reader.batches()[i];
    if (!filter.MayBeIn(batch, step)) {
      if (!batch.steps.empty()) step = batch.steps.back();
      continue;
    }
    events.clear();
    auto cursor = reader.EventsOfBatch(i);
    while (const format::Event* event = cursor->Next()) events.push_back(*event);
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
    for (const format::Event& event : events) {
      if (const auto* begin = event.As<format::Step>()) step = begin->step;
      if (!lister.Full() && filter.Wants(event, summary, step)) lister.Add(event);
    }
  }
}

void AddShowOptions(CLI::App& app) {
  AddTraceArgument(app, "TRACE", g_show_options.trace);
  app.add_option("--rank", g_show_options.rank, "The rank (default 0)");
  app.add_option("--attempt", g_show_options.attempt,
                 "The attempt of a restarted rank (default: the last)");
  app.add_option("--child", g_show_options.child,
                 "A child process of the rank, as `deja info` names it, e.g. 0/1");
  app.add_option("--kind", g_show_options.kinds,
                 "Only events of these kinds, e.g. enter,step,crash")
      ->delimiter(',');
  app.add_option("--call", g_show_options.calls, "Only these calls, e.g. AllReduce,getrandom")
      ->delimiter(',');
  app.add_option("--thread", g_show_options.thread, "Only this thread, e.g. 0.1");
  app.add_option("--comm", g_show_options.comm, "Only this communicator");
  app.add_option("--seq", g_show_options.seq,
                 "Only these operations of a communicator: A, A-B, A- or -B");
  app.add_option("--step", g_show_options.step, "Only these steps: A, A-B, A- or -B");
  auto* first = app.add_option("--first", g_show_options.first, "At most N events");
  app.add_option("--last", g_show_options.last, "Only the last N events")->excludes(first);
  app.add_flag("--stacks", g_show_options.stacks, "With the call stacks");
  app.add_flag("--all", g_show_options.all,
               "Also events that only define modules, stacks and handles");
  AddBinariesOption(app, g_show_options.binaries);
  auto* tensor = app.add_option("--tensor", g_show_options.tensor,
                                "Instead of events: statistics and histogram of the inputs and "
                                "results of operation COMM:SEQ, or of NAME[@STEP] that the program "
                                "has shown: the last one, or the last of the step");
  app.add_option("--beside", g_show_options.beside,
                 "With --tensor: also where they differ from those of this rank")
      ->needs(tensor);
  app.add_option("--beside-trace", g_show_options.beside_trace,
                 "With --tensor: also where they differ from those of another run's or a replay's "
                 "trace, of the same rank or that of --beside")
      ->needs(tensor);
  SetPaths(app, {"--beside-trace"});
  SetGroups(app, {{"Tensors", {"--tensor", "--beside", "--beside-trace"}},
                  {"Which process", {"--rank", "--attempt", "--child"}},
                  {"Which events",
                   {"--kind", "--call", "--thread", "--comm", "--seq", "--step", "--first",
                    "--last", "--all"}},
                  {"Stacks", {"--stacks", "--binaries"}}});
}

// What --call can name in this recording, as `deja show` prints it.
std::vector<std::string> CallNames(const format::TraceHeader& header, const RankSummary& summary) {
  std::vector<std::string> names;
  for (const format::ApiName& api : header.apis) {
    names.push_back(summary.ApiName(api.id));
    if (names.back() != api.name) names.emplace_back(api.name);
  }
  constexpr uint32_t kClockSources = 256;
  for (uint32_t source = 0; source < kClockSources; ++source) {
    const char* name = format::ClockSourceName(source);
    const std::string_view text = name == nullptr ? "" : name;
    if (!text.empty()) names.emplace_back(text.substr(0, text.find('(')));
  }
  return names;
}

// The first of --call that no recorded call can have, in words; empty: there is none.
std::string FindUnknownCall(const format::TraceHeader& header, const RankSummary& summary) {
  if (g_show_options.calls.empty()) return {};
  const std::vector<std::string> names = CallNames(header, summary);
  for (const std::string& call : g_show_options.calls)
    if (std::find(names.begin(), names.end(), call) == names.end())
      return fmt::format("showing: --call {}: Deja records no such call{}", call,
                         DidYouMean(call, names));
  return {};
}

// A tensor with its bytes, where they were kept.
struct ShownTensor {
  FoundTensor found;
  std::vector<std::byte> bytes;
  std::string why_no_bytes;
};

Result<std::vector<ShownTensor>> TensorsOf(format::Trace& trace, uint32_t rank, int attempt,
                                           const TensorName& name) {
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
  DEJA_ASSIGN_OR_RETURN(const auto found, FindTensors(*reader, name));
  std::vector<ShownTensor> shown;
  for (const FoundTensor& one : found) {
    shown.push_back({one, {}, ""});
    auto bytes = ReadTensor(*reader, one.tensor);
    if (bytes)
      shown.back().bytes = std::move(*bytes);
    else
      shown.back().why_no_bytes = bytes.error().message;
  }
  return shown;
}

// Those that --beside and --beside-trace name; empty: neither does.
Result<std::vector<ShownTensor>> TensorsBeside(format::Trace& trace, const TensorName& name) {
  const bool has_rank = g_show_options.beside >= 0;
  const auto rank = has_rank ? static_cast<uint32_t>(g_show_options.beside) : g_show_options.rank;
  if (g_show_options.beside_trace.empty())
    return has_rank ? TensorsOf(trace, rank, -1, name) : std::vector<ShownTensor>{};
  DEJA_ASSIGN_OR_RETURN(const auto other, OpenTrace(g_show_options.beside_trace));
  return TensorsOf(*other, rank, -1, name);
}

// "rank 1 of b.deja"
std::string BesideName() {
  std::string name = fmt::format("rank {}", g_show_options.beside);
  if (g_show_options.beside_trace.empty()) return name;
  if (g_show_options.beside < 0) name = fmt::format("rank {}", g_show_options.rank);
  return fmt::format("{} of {}", name, g_show_options.beside_trace);
}

// In words, where `a` differs from the tensor beside it; "": one of them has no bytes.
std::string BesideText(const ShownTensor& a, const std::vector<ShownTensor>& others, size_t index) {
  if (index >= others.size() || a.bytes.empty()) return "";
  const ShownTensor& b = others[index];
  const std::string other = BesideName();
  if (a.bytes.size() != b.bytes.size() || a.found.tensor.dtype != b.found.tensor.dtype)
    return fmt::format("has another type or size than that of {}", other);
  return DifferenceText(digest::CompareElements(a.bytes, b.bytes, a.found.tensor.dtype),
                        a.found.tensor.count, other);
}

int ShowTensors(format::Trace& trace, const Context& context) {
  const auto name = ParseTensorName(g_show_options.tensor);
  if (!name) {
    Diagnose(name.error().message);
    return kExitUsage;
  }
  const auto tensors = TensorsOf(trace, g_show_options.rank, g_show_options.attempt, *name);
  if (!tensors) return FailWith(tensors.error());
  const auto others = TensorsBeside(trace, *name);
  if (!others) return FailWith(others.error());
  nlohmann::json json = nlohmann::json::array();
  for (size_t i = 0; i < tensors->size(); ++i) {
    const ShownTensor& one = (*tensors)[i];
    const TensorView view{one.found, fmt::format("rank {}, {}", g_show_options.rank, name->Text()),
                          one.bytes, one.why_no_bytes};
    const std::string beside = BesideText(one, *others, i);
    if (context.json) {
      json.push_back(TensorJson(view));
      if (!beside.empty()) json.back()["beside"] = beside;
      continue;
    }
    for (const std::string& line : TensorLines(view)) PrintLine(line);
    if (!beside.empty()) PrintLine("  " + beside);
  }
  if (context.json) PrintJson(json);
  return kExitOk;
}

int RunShow(const Context& context) {
  auto filter = Filter::Make();
  if (!filter) {
    Diagnose(filter.error().message);
    return kExitUsage;
  }
  auto trace = OpenTrace(g_show_options.trace);
  if (!trace) return FailWith(trace.error());
  const Pager pager(!context.json);
  if (!g_show_options.tensor.empty()) return ShowTensors(**trace, context);
  auto reader =
      g_show_options.child.empty()
          ? (*trace)->Rank(g_show_options.rank, g_show_options.attempt)
          : (*trace)->Child(g_show_options.rank, g_show_options.child, g_show_options.attempt);
  if (!reader) return FailWith(reader.error());
  const format::RankReader& rank = **reader;
  RankSummary summary = ReadRankSummary(rank);
  if (const std::string unknown = FindUnknownCall(rank.header(), summary); !unknown.empty()) {
    Diagnose(unknown);
    return kExitUsage;
  }
  size_t batches = rank.batches().size();
  if (g_show_options.last == 0) {
    Lister lister(summary, rank.header().start_mono_ns, context.json);
    List(rank, 0, *filter, summary, lister);
  } else {
    // From the end backwards, doubling, until enough events were found or the recording is read
    // whole.
    for (size_t count = 4;; count *= 4) {
      size_t from = count >= batches ? 0 : batches - count;
      Lister lister(summary, rank.header().start_mono_ns, context.json);
      List(rank, from, *filter, summary, lister);
      if (lister.kept() < g_show_options.last && from != 0) continue;
      lister.Finish();
      break;
    }
  }
  const std::string damage = FindEventDamage(rank);
  if (damage.empty()) return kExitOk;
  SayDamaged(fmt::format("rank {}", g_show_options.rank), damage);
  return kExitDataLoss;
}

}  // namespace

extern const Command kShowCommand;
const Command kShowCommand = {
    "show",
    "Print the events of a rank, filtered",
    "  deja show run.deja --rank 2 --last 20 --stacks\n"
    "  deja show run.deja --rank 2 --call AllReduce --seq 400-    from operation 400 of each "
    "communicator\n"
    "  deja show run.deja --rank 0 --child 0/3+1                  what its third child did\n"
    "  deja show run.deja --rank 0 --step 17 --json               one JSON object a line\n"
    "  deja show run.deja --rank 0 --tensor 0:412 --beside 1      a tensor, and where rank 1's "
    "differs\n"
    "  deja show run.deja --rank 0 --tensor conv1.weight@40 --beside-trace b.deja\n",
    false,
    AddShowOptions,
    RunShow,
};

}  // namespace deja::cli
