// Dumps of other recorders: a stranger's file becomes a trace.
#include <filesystem>
#include <string>
#include <vector>

#include "cli/export/pickle.h"
#include "cli/import/flight_dump.h"
#include "cli/import/import_trace.h"
#include "format/trace/trace.h"
#include "tests/fuzz/more_targets.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {
namespace {

namespace fs = std::filesystem;

// One rank of a group of two has an operation that ended, and a transfer that did not.
constexpr const char* kDump = R"({"version": "2.10", "host_name": "a",
"pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
"entries": [
{"record_id": 1, "process_group": ["0", "default_pg"], "collective_seq_id": 1, "p2p_seq_id": 0,
 "profiling_name": "nccl:all_reduce", "time_created_ns": 1700000000000000000,
 "input_sizes": [[2, 3]], "input_dtypes": ["Float"], "output_sizes": [[2, 3]],
 "output_dtypes": ["Float"], "state": "completed",
 "time_discovered_completed_ns": 1700000000000001000, "timeout_ms": 60000, "is_p2p": false,
 "frames": [{"name": "train", "filename": "/job/train.py", "line": 7}]},
{"record_id": 2, "process_group": ["0", "default_pg"], "collective_seq_id": 1, "p2p_seq_id": 1,
 "profiling_name": "nccl:send 0->1", "time_created_ns": 1700000001000000000,
 "input_sizes": [[4]], "input_dtypes": ["BFloat16"], "state": "scheduled", "is_p2p": true}]})";

std::string PickledDump() {
  cli::Pickle pickle;
  pickle.BeginDict();
  pickle.Text("version");
  pickle.Text("2.10");
  pickle.Text("entries");
  pickle.BeginList();
  pickle.BeginDict();
  pickle.Text("record_id");
  pickle.Number(1);
  pickle.Text("process_group");
  pickle.BeginTuple();
  pickle.Text("0");
  pickle.Text("default_pg");
  pickle.EndTuple();
  pickle.Text("profiling_name");
  pickle.Text("nccl:broadcast");
  pickle.Text("time_discovered_completed_ns");
  pickle.None();
  pickle.EndDict();
  pickle.EndList();
  pickle.EndDict();
  pickle.Stop();
  return pickle.Take();
}

}  // namespace

void RunFlightDump(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string file = scratch.path() + "/rank_0";
  const std::string out = scratch.path() + "/out.deja";
  samples::WriteFileBytes(file, {bytes.begin(), bytes.end()});
  const auto dump = cli::ReadFlightDump(file);
  if (!dump) return;
  fs::remove_all(out);
  if (!cli::ImportTrace({*dump}, out)) return;
  Check(Trace::Open(out).has_value(), "an imported trace can be opened");
}

std::vector<std::vector<std::byte>> FlightDumpSeeds() {
  return {BytesOfText(kDump), BytesOfText(PickledDump())};
}

}  // namespace deja::format::fuzz
