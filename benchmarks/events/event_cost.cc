// What one event costs its thread: the enter of an all-reduce at level order, with its time,
// through the recorder's own writer, while the background thread drains. event_cost.py runs it
// beside its peer.
#include "benchmarks/events/event_cost.h"

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "format/log/rank_log.h"
#include "recorder/events/event_clock.h"
#include "recorder/events/event_writer.h"

int main() {
  using namespace deja;
  std::string dir = (std::filesystem::temp_directory_path() / "deja-bench-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) return 1;
  format::RankLogOptions options;
  options.trace_dir = dir;
  auto log = format::RankLog::Create(options);
  if (!log || !(*log)->BecomeRank({})) return 1;
  recorder::StartEventClock();
  recorder::EventWriter writer;
  writer.GoLive(**log);
  // What no tracer can do without: a reading of the counter, and a record of 64 bytes.
  std::vector<uint64_t> records(256 << 7);
  event_cost::Report("limit", [&](uint64_t n) {
    volatile uint64_t* record = &records[n * 8 % records.size()];
    for (uint64_t i = 1; i < 8; ++i) record[i] = n;
    record[0] = __rdtsc();
  });
  event_cost::Report("counter", [&](uint64_t) { (void)__rdtsc(); });
  event_cost::Report("deja", [&](uint64_t n) {
    format::CallEnter enter;
    enter.api = 4;
    enter.comm = 1;
    enter.comm_seq = n;
    enter.stack = 17;
    enter.args = {0x7f0012345678, 0x7f0012345678, 65536, 7, 0, 1, 0};
    writer.Write(enter);
  });
  event_cost::Report("deja-clock", [&](uint64_t n) {
    writer.WriteClock(format::ClockSource::kMonotonic, static_cast<int64_t>(n * 1000));
  });
  (*log)->Finish();
  std::filesystem::remove_all(dir);
  return 0;
}
