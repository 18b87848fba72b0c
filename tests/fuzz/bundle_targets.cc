// What opens, trusts and redacts bundles: parts, the trust store, rules for reading, the inventory
// of a program, the redactor as a whole.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/fence/read_rules.h"
#include "cli/fence/trust_store.h"
#include "cli/pack/redactor.h"
#include "cli/summaries/program_parts.h"
#include "format/pack/bundle_writer.h"
#include "format/payloads/payload_table.h"
#include "format/reader/rank_reader.h"
#include "format/trace/bundle_parts.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/frame_format.h"
#include "tests/fuzz/more_targets.h"
#include "tests/fuzz/rank_input.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr mode_t kOwnOnly = 0700;

std::vector<Hash128> PayloadsOf(const RankReader& reader) {
  std::vector<Hash128> hashes;
  for (const PayloadInfo& info : reader.payloads()) hashes.push_back(info.hash);
  return hashes;
}

}  // namespace

// ---- Parts: together they are the whole.

void RunParts(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string whole = scratch.path() + "/b.zip";
  const std::string joined = scratch.path() + "/joined.zip";
  for (const auto& entry : fs::directory_iterator(scratch.path())) fs::remove(entry.path());
  const uint64_t size = bytes.empty() ? 1 : 64 * (1 + static_cast<uint64_t>(bytes[0]));
  const Bytes content = {bytes.begin(), bytes.end()};
  samples::WriteFileBytes(whole, content);
  const auto parts = SplitFile(whole, size);
  if (!parts) return Check(fs::exists(whole), "what is not split is there");
  Check(!fs::exists(whole), "what is split is not there");
  Check(PartsOf(parts->front()) == *parts, "all parts are found");
  for (const std::string& part : *parts) Check(fs::file_size(part) <= size, "no part is larger");
  Check(JoinParts(parts->front(), joined).has_value(), "parts can be joined");
  Check(samples::FileBytes(joined) == content, "parts are the whole");
  (void)Trace::Open(parts->front());
}

std::vector<Bytes> PartSeeds() {
  const samples::ScratchFolder folder;
  samples::WriteSampleRank(samples::MakeSampleRank({.batches = 1, .events_per_batch = 5}),
                           folder.path() + "/run.deja/rank-00000");
  const std::string bundle = folder.path() + "/run.deja.zip";
  Check(WriteBundle(folder.path() + "/run.deja", bundle).has_value(), "a bundle can be made");
  return {samples::FileBytes(bundle), BytesOfText("x"), BytesOfText(std::string(1000, 'y'))};
}

// ---- The trust store: what it does not say is not trusted.

void RunTrust(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  static const int set = setenv("XDG_STATE_HOME", (scratch.path() + "/state").c_str(), 1);
  Check(set == 0, "the environment can be changed");
  const std::string bundle = scratch.path() + "/bundle.zip";
  const std::string trusted = scratch.path() + "/state/deja/trusted";
  const std::string text = TextOf(bytes);
  fs::remove_all(scratch.path() + "/state");
  samples::WriteFileBytes(bundle, {bytes.begin(), bytes.end()});
  chmod(bundle.c_str(), S_IRUSR | S_IWUSR);
  const cli::TrustStore store;
  Check(store.Of(bundle) == cli::Trust::kNone, "at first nothing is known");
  Check(store.Add(bundle, cli::Trust::kOwn).has_value(), "it can be remembered");
  Check(store.Of(bundle) == cli::Trust::kOwn, "and is known again");
  // An entry that another program has written something else into.
  for (const auto& entry : fs::directory_iterator(trusted))
    samples::WriteFileBytes(entry.path().string(), {bytes.begin(), bytes.end()});
  const cli::Trust trust = store.Of(bundle);
  Check(trust != cli::Trust::kOwn || text.starts_with("own "), "only an entry's word counts");
  Check(trust != cli::Trust::kAgreed || text.starts_with("agreed "), "only its first word");
  // Names of traces are any.
  (void)store.Of(text);
  (void)store.Of(scratch.path() + "/" + text.substr(0, 200) + ".001");
  chmod(trusted.c_str(), kOwnOnly | S_IWOTH);
  Check(store.Of(bundle) == cli::Trust::kNone, "what others can write to says nothing");
}

std::vector<Bytes> TrustSeeds() {
  return {BytesOfText("own /data/run.deja"), BytesOfText("agreed /data/run.deja"),
          BytesOfText("owned"), BytesOfText("run.zip\n\x1b")};
}

// ---- Rules for reading: a trace's words never give it a home.

void RunReadRules(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  static const std::string home = scratch.path() + "/home/alice";
  static const bool made = fs::create_directories(home + "/project/env/bin");
  Check(made && setenv("HOME", home.c_str(), 1) == 0, "a home can be made");
  const std::string text = TextOf(bytes);
  const size_t first = std::min(text.find('\n'), text.size());
  const size_t second = std::min(text.find('\n', std::min(first + 1, text.size())), text.size());
  const auto word = [&](size_t from, size_t to) {
    std::string one = text.substr(std::min(from, text.size()), to - std::min(from, to));
    if (one.starts_with('~')) one = home + one.substr(1);
    return one;
  };
  const std::string executable = word(0, first);
  const std::string real = fs::canonical(home).string();
  for (const std::string& path :
       cli::ProgramPaths(executable, word(first + 1, second), word(second + 1, text.size()))) {
    if (path == executable) continue;
    Check(path.starts_with('/'), "a rule is an absolute path");
    Check(!(real + "/").starts_with(path == "/" ? path : path + "/"),
          "no rule gives the home folder, or one that it is in");
  }
}

std::vector<Bytes> ReadRuleSeeds() {
  return {BytesOfText("/usr/bin/python3\npython3\n/tmp"),
          BytesOfText("~/project/env/bin/python\n~/project/env/bin/python\n~/project"),
          BytesOfText("~/project/../../alice/x\n../x/y\n~/project/.."), BytesOfText("/\n/\n/"),
          BytesOfText("/bin/sh\n./bin/sh\n~")};
}

// ---- What a recorded program consisted of

void RunInventory(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  cli::Packages packages;
  const std::string text = TextOf(bytes);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    cli::AddPackage(text.substr(at, end - at), packages);
    at = end + 1;
  }
  for (const auto& [name, version] : packages)
    Check(name.size() + version.size() <= text.size(), "a package has its name from its entry");
  const std::string folder = scratch.path() + "/rank-00000";
  WriteRankInput(bytes, folder);
  const auto reader = OpenRankInput(folder);
  if (reader == nullptr) return;
  for (const cli::Change& change : cli::WhatChanged(cli::ReadProgramParts(*reader)))
    Check(!change.part.empty() && !change.text.empty(), "a change says what it is");
  // The same in little memory.
  if (reader->end().state == EndState::kCorrupt) return;
  const auto spilled = RankReader::Open(folder, {.use_tail = false, .spill_beyond = 1});
  Check(spilled.has_value(), "it can be read in little memory");
  Check((*spilled)->totals().payloads == reader->totals().payloads, "as many payloads");
  Check(PayloadsOf(**spilled) == PayloadsOf(*reader), "the same payloads");
}

std::vector<Bytes> InventorySeeds() {
  samples::SampleOptions all;
  all.all_kinds = true;
  samples::SampleOptions torn;
  torn.finished = false;
  return {
      RankInputOf(samples::MakeSampleRank(all)), RankInputOf(samples::MakeSampleRank(torn)),
      BytesOfText("numpy-1.26.4.dist-info\ntorch-2.5.1+cpu.dist-info\nfoo.egg-info\n-.dist-info")};
}

// ---- The redactor: what it makes of any trace is a bundle.

void RunRedactor(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string trace = scratch.path() + "/run.deja";
  const std::string bundle = scratch.path() + "/run.deja.zip";
  fs::remove(bundle);
  WriteRankInput(bytes, trace + "/rank-00000");
  if (OpenRankInput(trace + "/rank-00000") == nullptr) return;
  cli::Redactor redactor("KEPT_*", "*MASKED*");
  PackOptions options;
  options.rewriter = &redactor;
  if (!WriteBundle(trace, bundle, options)) return;
  const auto packed = Trace::Open(bundle);
  Check(packed.has_value(), "a redacted bundle can be opened");
  Check((*packed)->Rank(0).has_value(), "its rank can be read");
  const auto report = Verify(**packed, {});
  Check(report.has_value(), "it can be verified");
  const auto recorded = RankReader::Open(trace + "/rank-00000", {.use_tail = false});
  Check(recorded && (*recorded)->totals().events >= report->events, "it has no more events");
}

std::vector<Bytes> RedactorSeeds() {
  samples::SampleOptions all;
  all.all_kinds = true;
  all.batches = 1;
  all.floats = 20;
  return {RankInputOf(samples::MakeSampleRank(all))};
}

}  // namespace deja::format::fuzz
