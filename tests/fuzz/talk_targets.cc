// Words by which Deja's parts and other programs talk: requests to `deja serve`, lists in a
// replay's scratch folder, the file of a job. Symbols of a recorded program, too.
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/events/symbolizer.h"
#include "cli/record/trace_claim.h"
#include "cli/replay/start/newer_nccl.h"
#include "cli/serve/operation_server.h"
#include "cli/serve/recorded_operations.h"
#include "format/layout/child_folder.h"
#include "format/layout/mark.h"
#include "format/reader/rank_reader.h"
#include "format/scratch/fold_files.h"
#include "format/scratch/process_list.h"
#include "format/scratch/scratch_names.h"
#include "tests/fuzz/more_targets.h"
#include "tests/fuzz/rank_input.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

}  // namespace

// ---- Requests to `deja serve`: lines of JSON to a sound recording.

void RunServe(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  static const std::string folder = scratch.path() + "/rank-00000";
  static const bool made = [] {
    samples::WriteSampleRank(samples::MakeSampleRank({.batches = 2, .all_kinds = true}), folder);
    return true;
  }();
  Check(made, "a recording can be made");
  static const std::unique_ptr<RankReader> reader = OpenRankInput(folder);
  static const cli::RecordedOperations recorded(*reader);
  static const cli::RankSummary summary = cli::ReadRankSummary(*reader);
  cli::OperationServer server(*reader, recorded, summary);
  (void)server.Greeting();
  std::istringstream lines(TextOf(bytes));
  for (std::string line; std::getline(lines, line);) {
    const json words = json::parse(line, nullptr, false);
    if (!words.is_object()) continue;
    const cli::ServedAnswer answer = server.Answer(words, bytes);
    Check(answer.words.is_object(), "a request has an answer");
    (void)answer.words.dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

std::vector<std::vector<std::byte>> ServeSeeds() {
  return {BytesOfText("{\"group\": 0, \"operation\": \"c10d_allreduce\", \"dtype\": 7, "
                      "\"input_count\": 2, \"output_count\": 2, \"op\": 0, \"bytes\": 8}\n"
                      "{\"store\": \"c10d_store_get\", \"key\": \"ranks\"}\n"),
          BytesOfText("{\"group\": -1, \"operation\": 7}\n{\"store\": null}\n[1]\n{}\n"),
          BytesOfText("{\"group\": -1e25, \"operation\": \"c10d_allreduce\"}\n"
                      "{\"group\": 0, \"operation\": \"c10d_allreduce\", \"dtype\": 1e300}\n")};
}

// ---- Small files that other processes leave.

void RunLists(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string folder = scratch.path() + "/fold";
  fs::create_directories(folder);
  const std::vector<std::byte> content = {bytes.begin(), bytes.end()};
  samples::WriteFileBytes(folder + kFoldCommsFile, content);
  samples::WriteFileBytes(folder + kFoldResultsFile, content);
  if (const auto comms = ReadFoldComms(folder)) {
    Check(WriteFoldComms(folder, *comms).has_value() && ReadFoldComms(folder) == *comms,
          "communicators that were read can be written");
  }
  if (const auto results = ReadFoldResults(folder)) {
    Check(WriteFoldResults(folder, *results).has_value() && ReadFoldResults(folder) == *results,
          "results that were read can be written");
  }
  samples::WriteFileBytes(folder + kChildrenFile, content);
  const auto processes = ReadProcessList(folder + kChildrenFile);
  Check(WriteProcessList(folder + kChildrenFile, processes).has_value() ||
            TextOf(bytes).find_first_of("\t") != std::string::npos,
        "processes that were read can be written");
  samples::WriteFileBytes(folder + "/job", content);
  samples::WriteFileBytes(folder + "/mark-1", content);
  (void)cli::TraceClaim::CanJoin(folder);
  Check(ReadMark(folder, 1).size() <= content.size() + 4, "a mark's reason is from its file");
}

std::vector<std::vector<std::byte>> ListSeeds() {
  return {BytesOfText("00000000000000ff 4 0123456789abcdef\n"),
          BytesOfText("0123456789abcdef 2 412\n"),
          BytesOfText("0/1\t/traces/run.deja/child-17-0011aabb\n0/1+1\t\n"),
          BytesOfText("deja job 1\nid 0123456789abcdef0123456789abcdef\nkey slurm:17\n")};
}

// ---- A recorded program's ELF and DWARF, and the library that is made for functions of newer
// versions of NCCL.

void RunSymbols(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string path = scratch.path() + "/libprogram.so";
  samples::WriteFileBytes(path, {bytes.begin(), bytes.end()});
  {
    cli::Symbolizer symbolizer;
    constexpr uint64_t kCode = 0x340;  // the sample's functions begin and end before
    std::vector<uint64_t> offsets = {0x1000, 0xffffffff, ~uint64_t{0}};
    for (uint64_t offset = 0; offset < kCode; offset += 12) offsets.push_back(offset);
    for (const uint64_t offset : offsets) {
      const auto frames = symbolizer.Resolve(path, "", offset, offset % 8 == 0);
      Check(!frames.empty(), "an address has a frame");
      for (const cli::SourceFrame& frame : frames) (void)frame.Describe();
    }
  }
  (void)cli::NewerNcclLibrary({TextOf(bytes).substr(0, 100), "ncclAllReduceConfig"});
}

std::vector<std::vector<std::byte>> SymbolSeeds() {
  // Three small functions, of which one is inlined, with debug information.
  std::ifstream in(DEJA_FUZZ_SYMBOLS, std::ios::binary);
  std::ostringstream library;
  library << in.rdbuf();
  Check(!library.str().empty(), "the library with symbols was built");
  return {BytesOfText(library.str())};
}

}  // namespace deja::format::fuzz

// LeakSanitizer asks for it. elfutils loses memory where it gives up on damaged debug information.
extern "C" const char* __lsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libdw.so";
}
