// What a trace that does not keep all payloads says about those that it keeps.
//
// Values; one thread.
#ifndef DEJA_CLI_SUMMARIES_WINDOW_SUMMARY_H_
#define DEJA_CLI_SUMMARIES_WINDOW_SUMMARY_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/reader/rank_reader.h"

namespace deja::cli {

struct WindowSummary {
  // Numbers that the program gave its steps, of those whose payloads are kept: first and last of
  // each stretch. The marked steps come first, then the window itself.
  std::vector<std::pair<uint64_t, uint64_t>> kept_steps;
  bool keeps_any = false;
  bool keeps_start = false;  // what came before the first step
  uint64_t payloads_dropped = 0;
  uint64_t payload_bytes_dropped = 0;
  uint64_t marked_segments = 0;

  [[nodiscard]] bool drops() const { return payloads_dropped != 0; }
  // "the payloads of steps 96 to 100 are kept, 950 older ones (1.2 GB) were dropped"
  [[nodiscard]] std::string Describe() const;
};

WindowSummary ReadWindowSummary(const format::RankReader& reader);
nlohmann::json ToJson(const WindowSummary& summary);

// "buffer 64 MB, at most 12 MB in use; the program waited 3 times, 1.2 s in all"; empty for
// nothing.
std::string DescribePressure(const format::Pressure& pressure);
nlohmann::json ToJson(const format::Pressure& pressure);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_WINDOW_SUMMARY_H_
