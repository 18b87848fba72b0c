// Texts: of a trace, of options, for a terminal; secrets, stand-ins; the report of a replay; and
// the summaries that lie beside recordings.
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/evidence/summary_codec.h"
#include "cli/events/short_name.h"
#include "cli/number_range.h"
#include "cli/pack/stand_ins.h"
#include "cli/programs/build_id.h"
#include "cli/programs/program_file.h"
#include "cli/replay/report/replay_report.h"
#include "common/input_rule.h"
#include "common/secrets/secrets.h"
#include "common/text/plain_text.h"
#include "format/layout/payload_segments.h"
#include "format/layout/rank_folder.h"
#include "format/reader/replay_origin.h"
#include "format/tail/clock_run.h"
#include "tests/fuzz/more_targets.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {
namespace {

// What comes before the first zero byte, and what comes behind it.
std::pair<std::string, std::string> Halves(std::span<const std::byte> bytes) {
  const std::string text = TextOf(bytes);
  const size_t zero = std::min(text.find('\0'), text.size());
  return {text.substr(0, zero), zero < text.size() ? text.substr(zero + 1) : std::string()};
}

std::string WithZero(std::string_view first, std::string_view second) {
  return std::string(first) + '\0' + std::string(second);
}

}  // namespace

void RunTexts(std::span<const std::byte> bytes) {
  const std::string text = TextOf(bytes);
  const auto [first, second] = Halves(bytes);
  if (const auto origin = ParseReplayOrigin(text)) {
    const auto again = ParseReplayOrigin(origin->Write());
    Check(again && again->Write() == origin->Write(), "an origin that we write we read");
  }
  Check(IsPlainText(PlainText(text)), "what a terminal is shown is plain");
  (void)PlainJson(text);
  (void)MatchesPathPattern(first, second);
  (void)InputRule(second, first).IsInput("/" + first);
  (void)cli::ParseRange("--seq", text);
  if (const auto ranks = cli::ParseRanks({first, second}))
    Check(ranks->size() <= 1 << 24, "a list of ranks is bounded");
  Check(cli::ShortName(text).size() <= text.size() + 8, "a short name is short");
  (void)IsChildFolderName(text);
  if (const auto rank = ParseRankFolderName(text))
    Check(MakeRankFolderName(rank->rank, rank->attempt) == text, "one name a rank");
  if (const auto segment = ParseSegmentFileName(text))
    Check(SegmentFileName(*segment) == text, "one name a segment");
}

std::vector<std::vector<std::byte>> TextSeeds() {
  ReplayOrigin origin;
  origin.trace = "a trace";
  origin.job_id = "0123456789abcdef0123456789abcdef";
  origin.from_step = 7;
  std::vector<std::vector<std::byte>> seeds;
  for (const std::string& text :
       {origin.Write(), std::string("rank-00012.3"), std::string("payloads-17.deja"),
        std::string("child-17-0011aabb"), WithZero("0-3", "5"),
        WithZero("/data/set/a.bin", "*/set/?.b*"),
        std::string("void c10::Box<std::tuple<int, std::vector<float> > >::call<true>(int)"),
        std::string("\x1b[31mred\xe2\x80\xae\xc2\x9b \xff {\"a\": \"\\u0007\"}")})
    seeds.push_back(BytesOfText(text));
  return seeds;
}

void RunSecrets(std::span<const std::byte> bytes) {
  const auto [name, value] = Halves(bytes);
  const SecretRule rule("KEPT_*", "*MASKED*");
  std::string masked = value;
  (void)rule.MaskValue(name, masked);
  std::string text = TextOf(bytes);
  const std::string before = text;
  (void)rule.MaskText(text);
  std::string again = text;
  (void)rule.MaskText(again);
  Check(text.size() == before.size(), "a mask keeps the length");
  std::string counted = before;
  (void)rule.MaskCounted(counted);
  Check(counted.size() == before.size(), "a mask keeps the length of counted texts");
  std::string argument = value;
  (void)rule.MaskArgument(name, argument);
  // However a stream is cut, the same of it is masked.
  std::string whole = before;
  HeaderMasker one(rule);
  one.Mask(whole);
  std::string pieces = before;
  HeaderMasker other(rule);
  const size_t piece = bytes.empty() ? 1 : static_cast<size_t>(bytes[0]) % 7 + 1;
  for (size_t at = 0; at < pieces.size(); at += piece)
    other.Mask(std::span(pieces).subspan(at, std::min(piece, pieces.size() - at)));
  Check(whole == pieces, "pieces are masked like the whole");
}

std::vector<std::vector<std::byte>> SecretSeeds() {
  std::vector<std::vector<std::byte>> seeds;
  for (const std::string& text :
       {WithZero("PGPASSWORD", "hunter2hunter2"), WithZero("--auth", "user:pass-word-1"),
        std::string(
            "GET / HTTP/1.1\r\nAuthorization: Bearer abcdefghijklmnop\r\nHost: a\r\n\r\nbody"),
        std::string("postgres://me:secret@host/db?X-Amz-Signature=0123456789abcdef"),
        std::string("{\"api_key\": \"sk_live_0123456789abcdefghijklmn\"}"),
        std::string("token=ghp_0123456789abcdefghijklmnopqrstuvwxyz"),
        // MessagePack, and a pickle.
        std::string("\x82\xa8password\xaehunter2hunter2\xd9\x07"
                    "api_key\xc4\x0chunter2hunte"),
        std::string("\x80\x04}\x8c\x08password\x94\x8c\x0ehunter2hunter2\x94s."),
        std::string("}X\x08\0\0\0passwordq\0X\x0e\0\0\0hunter2hunter2q\1s.", 39)})
    seeds.push_back(BytesOfText(text));
  return seeds;
}

void RunStandIns(std::span<const std::byte> bytes) {
  const auto [learnt, text] = Halves(bytes);
  cli::StandIns names;
  names.LearnHost(learnt.substr(0, 64));
  names.LearnUser(learnt.substr(0, 32));
  names.LearnWorkingFolder("/" + learnt);
  names.LearnValue("TEAM", learnt);
  names.LearnAddresses(learnt);
  names.Settle();
  std::string replaced = text;
  names.ReplaceAll(replaced);
  Check(replaced.size() == text.size(), "a stand-in keeps the length");
  Check(names.OfPath("/" + text).size() == text.size() + 1, "so does a path's");
  std::string binary = text;
  names.ReplaceLearnt(binary);
  names.ReplaceKnownAddresses(binary);
  names.ReplaceSocketAddress(binary);
  Check(binary.size() == text.size(), "and one in bytes");
}

std::vector<std::vector<std::byte>> StandInSeeds() {
  return {BytesOfText(WithZero("trainbox17.lab.example", "on trainbox17, /home/alice/x 10.1.2.3")),
          BytesOfText(WithZero("at 10.44.7.193:29500 and [fd00::12:a1b2]",
                               "10.44.7.193 fd00::12:a1b2 /usr/lib/x")),
          BytesOfText(WithZero("alice", std::string("\2\0\x50\0\x0a\x2c\7\xc1........", 16)))};
}

void RunReport(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder folder;
  samples::WriteFileBytes(folder.path() + "/report.jsonl", {bytes.begin(), bytes.end()});
  const cli::ReplayReport report = cli::ReadReport(folder.path());
  Check(report.lines.size() + report.damage.size() <= 10'000, "a report is bounded");
  for (const cli::ReportLine& line : report.lines) {
    const std::string text =
        cli::ToJson(line).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    Check(text.find("\"kind\"") != std::string::npos, "each line has a kind");
  }
  (void)cli::FindLine<cli::EndLine>(report.lines);
}

std::vector<std::vector<std::byte>> ReportSeeds() {
  return {
      BytesOfText("{\"kind\": \"start\", \"pid\": 17, \"child\": \"0/1\"}\n"
                  "{\"kind\": \"divergence\", \"step\": 1e300, \"text\": \"x\"}\n"
                  "{\"kind\": \"counters\", \"operations\": 3, \"digests_compared\": 2}\n"
                  "{\"kind\": \"end\", \"how\": \"reached\", \"text\": \"\u00e9\", \"parked\": "
                  "[{\"thread\": 1}]}\n")};
}

void RunPrograms(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder folder;
  const std::string path = folder.path() + "/program";
  samples::WriteFileBytes(path, {bytes.begin(), bytes.end()});
  (void)cli::BuildIdOf(path);
  (void)cli::WhyNoProgram(path);
}

std::vector<std::vector<std::byte>> ProgramSeeds() {
  // The first pages of this program: headers and notes.
  constexpr std::streamsize kFirst = 8192;
  std::string self(kFirst, '\0');
  std::ifstream in("/proc/self/exe", std::ios::binary);
  in.read(self.data(), kFirst);
  return {BytesOfText(self), BytesOfText("#!/bin/sh\n")};
}

void RunSummary(std::span<const std::byte> bytes) {
  check::RankSummary summary;
  if (!check::DecodeSummary(TextOf(bytes), summary)) return;
  check::RankSummary again;
  Check(check::DecodeSummary(check::EncodeSummary(summary), again), "what was read is written");
  again.rank = summary.rank + 1;
  std::vector<check::RankSummary> both;
  both.push_back(std::move(summary));
  both.push_back(std::move(again));
  (void)check::Check(check::Job(std::move(both)));
}

std::vector<std::vector<std::byte>> SummarySeeds() {
  check::RankSummary summary;
  summary.world_size = 2;
  summary.has_digests = true;
  check::Signature signature;
  signature.operation = check::Operation::kAllReduce;
  summary.signatures = {signature};
  summary.sites.push_back({{"train.py", 7, "step"}});
  check::CommSummary comm;
  comm.nranks = 2;
  comm.collectives.Own().resize(3);
  comm.transfers.resize(2);
  summary.comms = {comm};
  summary.open.resize(1);
  summary.seen.weights.resize(1);
  summary.seen.batches.resize(1);
  summary.seen.inputs.resize(2);
  summary.surroundings = {{"env NCCL_ALGO", "Ring"}};
  return {BytesOfText(check::EncodeSummary(summary))};
}

}  // namespace deja::format::fuzz
