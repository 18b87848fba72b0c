// deja info: what a trace holds and how each rank ended.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cli/command.h"
#include "cli/events/event_words.h"
#include "cli/events/rank_summary.h"
#include "cli/help/option_list.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "cli/summaries/checkpoint_summary.h"
#include "cli/summaries/child_summary.h"
#include "cli/summaries/input_summary.h"
#include "cli/summaries/job_facts.h"
#include "cli/summaries/job_summary.h"
#include "cli/summaries/program_parts.h"
#include "cli/summaries/replay_summary.h"
#include "cli/summaries/trace_damage.h"
#include "cli/summaries/window_summary.h"
#include "common/text/hex_text.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct InfoOptions {
  std::string trace;
  std::vector<std::string> binaries;
  bool children = false;
  bool packages = false;
};
InfoOptions g_info_options;

// Without --children.
constexpr size_t kMostChildren = 8;
constexpr size_t kMostFiles = 5;

struct RankRow {
  format::RankFolder folder;
  const format::RankReader* reader = nullptr;
  RankSummary summary;
  std::string ended;
  uint64_t duration_ns = 0;
  std::vector<ChildRow> children;
  InputSummary inputs;
  std::vector<format::RecordedCheckpoint> checkpoints;
  std::string damage;  // of its events; empty: none
};

// Side by side: each decodes the last batches of its recording.
void ReadSummaries(std::vector<RankRow>& rows) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++) {
      rows[i].summary = ReadRankSummary(*rows[i].reader);
      rows[i].damage = FindEventDamage(*rows[i].reader);
    }
  };
  std::vector<std::thread> threads;
  const size_t helpers = std::min<size_t>(std::thread::hardware_concurrency(), rows.size() / 8);
  for (size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

nlohmann::json ToJson(const RankRow& row, Symbolizer& symbolizer) {
  const format::TraceHeader& header = row.reader->header();
  const format::Footer& totals = row.reader->totals();
  nlohmann::json json = {
      {"rank", row.folder.rank},
      {"attempt", row.folder.attempt},
      {"pid", header.process.pid},
      {"hostname", header.process.hostname},
      {"ended", row.ended},
      {"finished", row.summary.finished},
      {"swept", row.summary.swept},
      {"running", row.summary.running},
      {"events", totals.events},
      {"payloads", totals.payloads},
      {"payload_bytes", totals.payload_bytes},
      {"partial_payloads", totals.partial_payloads},
      {"partial_payload_bytes", totals.partial_payload_bytes},
      {"shares", !header.shares_with.empty()},
      {"file_bytes", row.reader->file_bytes()},
      {"events_lost", totals.events_lost},
      {"payloads_lost", totals.payloads_lost},
      {"steps", totals.steps},
      {"duration_ns", row.duration_ns},
      {"degraded", row.summary.degraded},
      {"remarks", row.summary.remarks},
  };
  if (const WindowSummary window = ReadWindowSummary(*row.reader); window.drops())
    json["window"] = deja::cli::ToJson(window);
  if (!row.checkpoints.empty()) json["checkpoints"] = deja::cli::ToJson(row.checkpoints);
  if (totals.predicted.elements != 0) json["predicted"] = deja::cli::ToJson(totals.predicted);
  if (totals.pressure.buffer_bytes != 0) json["pressure"] = deja::cli::ToJson(totals.pressure);
  if (row.inputs.mode != 0) json["inputs"] = ToJson(row.inputs);
  if (const format::LeftOut& left_out = row.reader->left_out(); left_out.payloads != 0)
    json["left_out"] = {{"payloads", left_out.payloads},
                        {"payload_bytes", left_out.payload_bytes},
                        {"what", left_out.what}};
  if (!row.children.empty()) json["children"] = ToJson(row.children);
  if (row.summary.last_step) json["last_step"] = *row.summary.last_step;
  if (row.summary.exit) json["exit_code"] = row.summary.exit->code;
  if (row.summary.fate.known && row.summary.fate.signal != 0)
    json["killed_by"] = SignalName(row.summary.fate.signal);
  if (row.summary.oom_kills != 0) json["oom_kills"] = row.summary.oom_kills;
  if (row.summary.crash) {
    const CrashSummary& crash = *row.summary.crash;
    nlohmann::json frames = nlohmann::json::array();
    for (const SourceFrame& frame : row.summary.Resolve(symbolizer, crash.frames, true))
      frames.push_back(frame.Describe());
    json["crash"] = {{"signal", SignalName(crash.signal)},
                     {"code", crash.code},
                     {"address", crash.address},
                     {"thread", crash.thread},
                     {"stack", frames}};
  }
  if (row.summary.last_call) json["last_call"] = row.summary.last_call->Describe();
  for (const CallSummary& call : row.summary.open_calls)
    json["open_calls"].push_back({{"thread", call.thread}, {"call", call.Describe()}});
  for (const auto& [number, comm] : row.summary.comms) {
    json["comms"].push_back({{"comm", number},
                             {"hash", fmt::format("{:016x}", comm.hash)},
                             {"rank", comm.rank},
                             {"nranks", comm.nranks},
                             {"operations", comm.last_seq},
                             {"name", comm.name}});
    for (const auto& [api, choice] : comm.choices)
      json["comms"].back()["last_choices"].push_back({{"call", choice.call},
                                                      {"algorithm", choice.algorithm},
                                                      {"protocol", choice.protocol},
                                                      {"channels", choice.channels}});
    if (!comm.given_up_by.empty())
      json["comms"].back()["given_up"] = {{"by", comm.given_up_by}, {"under_way", comm.under_way}};
  }
  if (!row.damage.empty()) json["damaged"] = row.damage;
  if (row.reader->end().state != format::EndState::kCleanEnd)
    json["end"] = row.reader->end().detail;
  return json;
}

// ", given up by CommAbort with 3 tensors under way"
std::string GivenUpText(const CommSummary& comm) {
  if (comm.given_up_by.empty()) return "";
  std::string text = ", given up by " + comm.given_up_by;
  if (comm.under_way != 0)
    text += fmt::format(" with {} tensors under way", HumanCount(comm.under_way));
  return text;
}

// `is_restarted`: there are several attempts in the trace.
void PrintRank(const RankRow& row, bool is_restarted) {
  const format::Footer& totals = row.reader->totals();
  const std::string attempt = is_restarted ? fmt::format(" (attempt {})", row.folder.attempt) : "";
  PrintLine(fmt::format("rank {}{}: {}", row.folder.rank, attempt, row.ended));
  std::string facts = fmt::format("  {} events, {} step{}", HumanCount(totals.events),
                                  HumanCount(totals.steps), totals.steps == 1 ? "" : "s");
  if (row.summary.last_step) facts += fmt::format(" (last {})", *row.summary.last_step);
  facts += fmt::format(", {} payloads of {}", HumanCount(totals.payloads),
                       HumanBytes(totals.payload_bytes));
  if (totals.partial_payloads != 0)
    facts += fmt::format(" and {} of {} more", HumanBytes(totals.partial_payload_bytes),
                         HumanCount(totals.partial_payloads));
  facts += fmt::format(", {} on disk, {}", HumanBytes(row.reader->file_bytes()),
                       HumanDuration(row.duration_ns));
  PrintLine(facts);
  if (const WindowSummary window = ReadWindowSummary(*row.reader); window.drops())
    PrintLine("  window: " + window.Describe());
  for (const std::string& line : CheckpointLines(row.checkpoints)) PrintLine("  " + line);
  if (const std::string predicted = Describe(totals.predicted); !predicted.empty())
    PrintLine("  " + predicted);
  if (totals.pressure.waits + totals.pressure.payloads != 0)
    PrintLine("  " + DescribePressure(totals.pressure));
  for (const auto& [number, comm] : row.summary.comms) {
    std::string origin = comm.parent ? fmt::format(", from comm {}", *comm.parent) : "";
    std::string name = comm.name.empty() ? "" : fmt::format(" \"{}\"", comm.name);
    PrintLine(fmt::format("  comm {}{}: rank {} of {}, {} operations{}{}", number, name, comm.rank,
                          comm.nranks, HumanCount(comm.last_seq), origin, GivenUpText(comm)));
    for (const auto& [api, choice] : comm.choices)
      PrintLine(fmt::format("    last {}: {}", choice.call,
                            ChoiceText(choice.algorithm, choice.protocol, choice.channels)));
  }
  const size_t most = g_info_options.children ? row.children.size() : kMostChildren;
  for (const std::string& line : ChildLines(row.children, most)) PrintLine("  " + line);
  for (const std::string& line : row.inputs.Lines(kMostFiles)) PrintLine("  " + line);
  for (const std::string& reason : row.summary.degraded) PrintLine("  not recorded: " + reason);
  for (const std::string& reason : row.summary.remarks) PrintLine("  not recorded: " + reason);
  if (const format::LeftOut& left_out = row.reader->left_out(); left_out.payloads != 0)
    PrintLine(fmt::format("  left out when packed: {} payloads of {} ({})",
                          HumanCount(left_out.payloads), HumanBytes(left_out.payload_bytes),
                          left_out.what));
  if (totals.events_lost + totals.payloads_lost != 0)
    PrintLine(fmt::format("  lost: {} events, {} payloads", HumanCount(totals.events_lost),
                          HumanCount(totals.payloads_lost)));
  if (!row.damage.empty()) PrintLine("  DAMAGED: " + row.damage);
}

uint32_t LastAttemptOf(const std::vector<RankRow>& rows) {
  uint32_t last = 0;
  for (const RankRow& row : rows) last = std::max(last, row.folder.attempt);
  return last;
}

void PrintJob(const format::Trace& trace, const std::vector<RankRow>& rows) {
  const format::TraceHeader& header = rows.front().reader->header();
  uint64_t bytes = 0;
  for (const RankRow& row : rows) bytes += row.reader->file_bytes();
  PrintLine(fmt::format("trace    {}", trace.path()));
  for (const JobFact& fact : JobFacts(*rows.front().reader))
    PrintLine(fmt::format("{:<8} {}", fact.name, fact.value));
  size_t present = 0;
  for (const RankRow& row : rows) present += row.folder.attempt == 0 ? 1 : 0;
  const uint32_t attempts = LastAttemptOf(rows) + 1;
  PrintLine(fmt::format("ranks    {} of {}, {}level {}, {} on disk", present, header.world_size,
                        attempts == 1 ? "" : fmt::format("{} attempts, ", attempts),
                        LevelName(header.level), HumanBytes(bytes)));
  PrintLine("");
}

void PrintPackages(const format::RankReader& reader) {
  for (const auto& [folder, packages] : ReadProgramParts(reader).packages) {
    PrintLine("");
    PrintLine(fmt::format("{} packages in {}", packages.size(), folder));
    for (const auto& [name, version] : packages) PrintLine(fmt::format("  {} {}", name, version));
  }
}

void AddInfoOptions(CLI::App& app) {
  AddTraceArgument(app, "TRACE", g_info_options.trace);
  app.add_flag("--children", g_info_options.children,
               "List all recorded child processes of each rank, not only some");
  app.add_flag("--packages", g_info_options.packages,
               "List the Python packages that were installed for the first rank");
  AddBinariesOption(app, g_info_options.binaries);
}

int RunInfo(const Context& context) {
  auto trace = OpenTrace(g_info_options.trace);
  if (!trace) return FailWith(trace.error());
  Symbolizer symbolizer;
  for (const std::string& directory : g_info_options.binaries) symbolizer.AddDirectory(directory);

  std::vector<RankRow> rows;
  int code = kExitOk;
  for (const format::RankFolder& folder : (*trace)->ranks()) {
    auto reader = (*trace)->Rank(folder.rank, static_cast<int>(folder.attempt));
    if (!reader) {
      Diagnose(reader.error().message);
      code = kExitDataLoss;
      continue;
    }
    rows.push_back({folder, *reader, {}, "", 0, {}, {}, {}, ""});
    rows.back().inputs = ReadInputSummary(**reader);
    rows.back().checkpoints = format::ReadCheckpoints(**reader);
  }
  ReadSummaries(rows);
  for (RankRow& row : rows) {
    row.ended = row.summary.HowItEnded(symbolizer);
    row.children = ReadChildren(**trace, row.folder, symbolizer);
    for (const ChildRow& child : row.children) {
      if (child.lost != 0 || !child.damage.empty()) code = kExitDataLoss;
      if (!child.damage.empty())
        SayDamaged(fmt::format("rank {}, child {}", row.folder.rank, child.name), child.damage);
    }
    uint64_t start = row.reader->header().start_mono_ns;
    row.duration_ns = row.summary.last_time_ns > start ? row.summary.last_time_ns - start : 0;
    const format::Footer& totals = row.reader->totals();
    if (totals.events_lost + totals.payloads_lost != 0 || !row.damage.empty()) code = kExitDataLoss;
    if (!row.damage.empty()) SayDamaged(fmt::format("rank {}", row.folder.rank), row.damage);
  }
  if (rows.empty()) {
    Diagnose(fmt::format("reading: {}: no rank in it can be read", g_info_options.trace));
    return kExitFailure;
  }
  std::vector<RankOfJob> last_attempts;
  for (size_t i = 0; i < rows.size(); ++i)
    if (i + 1 == rows.size() || rows[i + 1].folder.rank != rows[i].folder.rank)
      last_attempts.push_back({rows[i].folder.rank, &rows[i].summary});
  std::vector<CommStanding> uneven = UnevenComms(last_attempts, symbolizer);
  if (context.json) {
    const format::TraceHeader& header = rows.front().reader->header();
    nlohmann::json json = {
        {"trace", (*trace)->path()},
        {"job", HexText(header.job_id)},
        {"program", header.process.argv},
        {"executable", header.process.executable},
        {"working_directory", header.process.working_directory},
        {"producer", header.producer},
        {"format", fmt::format("{}.{}", header.format_major, header.format_minor)},
        {"nccl", NcclVersion(header.process.nccl_version)},
        {"nccl_path", header.process.nccl_path},
        {"kernel", header.process.kernel},
        {"world_size", header.world_size},
        {"level", LevelName(header.level)},
        {"masked", header.process.masked},
        {"masked_by", header.process.masked_by},
        {"redacted", header.redacted},
        {"cpu_count", header.process.cpu_count},
        {"cpu_model", header.process.cpu_model},
        {"cpu_features", header.process.cpu_features},
        {"memory_bytes", header.process.memory_bytes},
        {"user", header.process.user},
        {"start_wall_ns", header.start_wall_ns},
        {"ranks", nlohmann::json::array()}};
    if (const auto replay = format::ReadReplayOrigin(*rows.front().reader))
      json["replay_of"] = deja::cli::ToJson(*replay);
    if (g_info_options.packages) json["packages"] = ReadProgramParts(*rows.front().reader).packages;
    for (const RankRow& row : rows) json["ranks"].push_back(ToJson(row, symbolizer));
    for (const CommStanding& comm : uneven) json["uneven_comms"].push_back(ToJson(comm));
    PrintJson(json);
    return code;
  }
  const Pager pager(true);
  PrintJob(**trace, rows);
  const uint32_t last = LastAttemptOf(rows);
  for (const RankRow& row : rows) PrintRank(row, last != 0);
  if (g_info_options.packages) PrintPackages(*rows.front().reader);
  if (!uneven.empty()) PrintLine("");
  for (const CommStanding& comm : uneven) PrintLine(comm.Describe());
  return code;
}

}  // namespace

extern const Command kInfoCommand;
const Command kInfoCommand = {
    "info",
    "Show what a trace holds and how each rank ended",
    "  deja info run.deja\n"
    "  deja info run.deja.zip --json\n"
    "  deja info run.deja --binaries ./unstripped    line numbers from binaries that are "
    "elsewhere\n",
    false,
    AddInfoOptions,
    RunInfo,
};

}  // namespace deja::cli
