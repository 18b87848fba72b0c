// What commands make of a recording that can be read: events in words, findings across ranks,
// differences, exports, the plan of a replay.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/libc_table.h"
#include "api/nccl_table.h"
#include "check/check.h"
#include "check/evidence/job.h"
#include "check/evidence/summarize.h"
#include "cli/check/check_report.h"
#include "cli/diff/trace_diff.h"
#include "cli/events/event_json.h"
#include "cli/events/event_text.h"
#include "cli/events/rank_summary.h"
#include "cli/export/formats.h"
#include "cli/report/report_data.h"
#include "cli/report/report_page.h"
#include "cli/summaries/checkpoint_summary.h"
#include "cli/summaries/input_summary.h"
#include "cli/summaries/job_facts.h"
#include "cli/summaries/window_summary.h"
#include "cli/tensors/tensor_lookup.h"
#include "cli/top/live_rank.h"
#include "common/text/plain_text.h"
#include "format/reader/checkpoints.h"
#include "format/reader/live_events.h"
#include "format/reader/rank_reader.h"
#include "replayer/plan/payload_source.h"
#include "replayer/plan/replay_plan.h"
#include "tests/fuzz/more_targets.h"
#include "tests/fuzz/rank_input.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::vector<std::byte>> WholeRanks() {
  std::vector<std::vector<std::byte>> seeds;
  for (const bool finished : {true, false}) {
    samples::SampleOptions options;
    options.all_kinds = true;
    options.finished = finished;
    options.batches = 1;
    options.floats = 20;
    seeds.push_back(RankInputOf(samples::MakeSampleRank(options)));
  }
  return seeds;
}

// Names of modules are files of this machine, which a fuzzer leaves alone.
class NoPlaces : public check::PlaceFinder {
 public:
  check::Site Find(const std::vector<check::CodeAddress>& stack, bool /*first_is_pc*/) override {
    check::Site site;
    if (!stack.empty()) site.push_back({stack.front().module, 7, "step"});
    return site;
  }
};

std::string JsonText(const json& value) {
  return PlainJson(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

void CheckText(const std::string& text) {
  Check(IsPlainText(PlainText(text)), "a text can be shown");
}

}  // namespace

// ---- Events in words, and what `deja info` says of a rank.

void RunEvents(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string folder = scratch.path() + "/rank-00000";
  WriteRankInput(bytes, folder);
  const auto reader = OpenRankInput(folder);
  if (reader == nullptr) return;
  const cli::RankSummary summary = cli::ReadRankSummary(*reader);
  cli::LiveRank live(0, reader->header());
  const auto cursor = reader->Events();
  while (const Event* event = cursor->Next()) {
    CheckText(cli::DescribeEvent(*event, summary));
    Check(json::accept(JsonText(cli::EventToJson(*event, summary))), "an event becomes JSON");
    (void)cli::StackOf(*event);
    live.Take(*event);
  }
  double span = 0;
  (void)live.Lately(5, span);
  for (const cli::JobFact& fact : cli::JobFacts(*reader)) CheckText(fact.value);
  (void)JsonText(cli::ToJson(cli::ReadInputSummary(*reader)));
  (void)JsonText(cli::ToJson(cli::ReadWindowSummary(*reader)));
  (void)JsonText(cli::ToJson(ReadCheckpoints(*reader)));
  const auto followed = LiveEvents::Open(folder);
  if (followed) (void)(*followed)->Poll([](const Event&) {});
}

std::vector<std::vector<std::byte>> EventSeeds() {
  return WholeRanks();
}

// ---- Two ranks of a job: findings, differences, exports, the page of a report.

void RunEvidence(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string folder = scratch.path() + "/rank-00000";
  WriteRankInput(bytes, folder);
  const auto reader = OpenRankInput(folder);
  if (reader == nullptr) return;
  NoPlaces places;
  std::vector<check::RankSummary> summaries;
  cli::ReportSource shown{"run.deja", "deja", cli::JobFacts(*reader), {}, {}, 0, {}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    summaries.push_back(check::Summarize(*reader, places, {.is_running = rank == 1}));
    summaries.back().rank = rank;
    shown.ranks[rank] = cli::ReadRankFacts(*reader);
  }
  const check::Job job(std::move(summaries));
  cli::ExportSource source{"run.deja", "deja", job, check::JoinOperations(job), {}, {}};
  source.report = check::Check(job);
  for (size_t rank = 0; rank < job.ranks.size(); ++rank)
    source.ranks.push_back(shown.ranks[static_cast<uint32_t>(rank)]);
  for (const std::string& line : cli::CheckLines(source.report, {"run.deja", 2})) CheckText(line);
  Check(json::accept(JsonText(cli::CheckJson(source.report, {"run.deja", 2}))), "so do findings");
  for (const cli::ExportFormat& format : cli::ExportFormats()) {
    const std::string out = scratch.path() + "/export";
    fs::remove_all(out);
    Check(format.write(source, out).has_value(), "an export can be written");
    const std::string name = format.name;
    if (name == "chrome" || name == "json")
      Check(json::accept(TextOf(samples::FileBytes(out))), "an export of JSON is JSON");
  }
  const std::string page = cli::ReportPage(cli::ReportData(shown, job, source.report, {}));
  static const size_t tags = [] {
    const std::string empty = cli::ReportPage(json::object());
    return static_cast<size_t>(std::count(empty.begin(), empty.end(), '<'));
  }();
  Check(static_cast<size_t>(std::count(page.begin(), page.end(), '<')) == tags,
        "nothing of a trace begins a tag");
}

std::vector<std::vector<std::byte>> EvidenceSeeds() {
  return WholeRanks();
}

// ---- Recordings of two ranks, compared; one of them is the seed.

void RunDifference(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  static const std::string sound = scratch.path() + "/rank-00001";
  static const bool made = [] {
    samples::WriteSampleRank(samples::MakeSampleRank({.rank = 1, .all_kinds = true}), sound);
    return true;
  }();
  Check(made, "a sound rank can be made");
  const std::string folder = scratch.path() + "/rank-00000";
  WriteRankInput(bytes, folder);
  const auto a = OpenRankInput(folder);
  const auto b = OpenRankInput(sound);
  if (a == nullptr) return;
  const cli::RankSummary of_a = cli::ReadRankSummary(*a);
  const cli::RankSummary of_b = cli::ReadRankSummary(*b);
  for (const bool between_ranks : {false, true}) {
    const cli::DiffOptions options{between_ranks, {"*rng"}};
    (void)cli::CompareRecordings({a.get(), &of_a, {}}, {b.get(), &of_b, {}}, options);
    (void)cli::CompareRecordings({b.get(), &of_b, {}}, {a.get(), &of_a, {}}, options);
    const auto same = cli::CompareRecordings({a.get(), &of_a, {}}, {a.get(), &of_a, {}}, options);
    Check(!same.first, "a recording does not differ from itself");
  }
}

std::vector<std::vector<std::byte>> DifferenceSeeds() {
  return WholeRanks();
}

// ---- The plan of a replay: read in the replayed process, before its fence matters.

namespace {

using api::NcclApi;

replayer::CallKind KindOfAnyCall(uint32_t api) {
  if (api == static_cast<uint32_t>(NcclApi::ncclGroupEnd)) return replayer::CallKind::kGroup;
  if (api % 7 == 3) return replayer::CallKind::kQuery;
  return api % 5 == 1 ? replayer::CallKind::kOperation : replayer::CallKind::kOrdered;
}
bool GivesUpAnyCall(uint32_t api) {
  return api == static_cast<uint32_t>(NcclApi::ncclCommAbort);
}

// All that a replay would ask for, and some that it would not.
void ReadPlan(const RankReader& reader, const RecordedCheckpoint* checkpoint) {
  auto plan = replayer::ReplayPlan::Build(reader, {KindOfAnyCall, GivesUpAnyCall, api::InputKindOf},
                                          checkpoint);
  if (!plan) return;
  const replayer::ReplayPlan& made = **plan;
  replayer::PayloadSource payloads(reader, made);
  for (const replayer::RecordedCall& call : made.calls()) {
    Check(made.Words(call.args).size() == call.args.size, "as many words as the range says");
    const auto outputs = made.Tensors(call.outputs);
    Check(outputs.size() == call.outputs.size, "as many tensors as the range says");
    for (const replayer::PoolRange range : {call.blob, call.out_blob})
      Check(made.Bytes(range).size() == range.size, "as many bytes as the range says");
    (void)made.Created(call.created);
    (void)made.Stack(call.stack);
    Check(made.FindOperation(call.comm, call.comm_seq) == replayer::kNone ||
              made.FindOperation(call.comm, call.comm_seq) < made.calls().size(),
          "an operation is a call");
    for (uint64_t launch = 0; launch < 3; ++launch) {
      (void)made.ReadAt(call.index, launch);
      (void)made.ProducedAt(call.index, launch);
    }
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      const auto size = payloads.SizeOf(outputs[i].hash);
      if (!size || *size > 1 << 20) continue;
      std::vector<std::byte> out(static_cast<size_t>(*size));
      (void)payloads.ReadOutput(call.index, i, out);
    }
  }
  for (const replayer::RecordedInput& input : made.inputs()) (void)made.Bytes(input.data);
  for (const replayer::PlannedTransfer& transfer : made.transfers()) {
    Check(transfer.connection < made.connections().size(), "a transfer has its connection");
    (void)made.Bytes(transfer.data);
    (void)made.Bytes(transfer.address);
  }
  for (const replayer::PlannedConnection& one : made.connections())
    Check(one.listener == replayer::kNone || one.listener < made.connections().size(),
          "a listener is a connection");
  for (const replayer::RecordedFile& file : made.files()) {
    const auto* states = made.FindFile(file.path);
    (void)made.FindLink(file.path);
    (void)made.HasFilesBelow(file.path);
    for (size_t i = 0; states != nullptr && i < states->size(); ++i)
      Check((*states)[i] < made.files().size(), "a state is a file");
  }
  for (const uint32_t call : made.served_order())
    Check(call < made.calls().size(), "what is served is a call");
}

}  // namespace

void RunPlan(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string folder = scratch.path() + "/rank-00000";
  WriteRankInput(bytes, folder);
  const auto reader = OpenRankInput(folder);
  if (reader == nullptr) return;
  ReadPlan(*reader, nullptr);
  for (const RecordedCheckpoint& checkpoint : ReadCheckpoints(*reader)) {
    ReadPlan(*reader, &checkpoint);
    break;
  }
}

std::vector<std::vector<std::byte>> PlanSeeds() {
  return WholeRanks();
}

}  // namespace deja::format::fuzz
