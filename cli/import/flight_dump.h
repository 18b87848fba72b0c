// FlightDump: a dump of PyTorch's Flight Recorder, as one rank wrote it.
//
// Values. Fields that a dump does not have are empty; what it says is not trusted.
#ifndef DEJA_CLI_IMPORT_FLIGHT_DUMP_H_
#define DEJA_CLI_IMPORT_FLIGHT_DUMP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"

namespace deja::cli {

struct FlightFrame {
  std::string function;
  std::string file;
  uint32_t line = 0;
};

struct FlightEntry {
  std::string description;  // of its group, "default_pg"
  std::string group;        // FlightDump::groups
  std::string name;         // "all_reduce", "send"
  uint64_t number = 0;      // collective_seq_id, or p2p_seq_id of a transfer
  uint64_t order = 0;       // record_id
  bool is_transfer = false;
  std::optional<uint32_t> peer;  // of a transfer, its rank in the group
  uint64_t created_ns = 0;       // wall clock
  std::optional<uint64_t> completed_ns;
  bool is_completed = false;
  uint64_t timeout_ms = 0;
  uint64_t input_count = 0;  // elements
  uint64_t output_count = 0;
  std::string dtype;  // "Float"; empty: no tensor
  std::vector<FlightFrame> frames;
};

struct FlightGroup {
  std::string description;      // "default_pg"
  std::vector<uint32_t> ranks;  // of the job, by their rank in the group
};

struct FlightDump {
  std::string path;
  uint32_t rank = 0;
  std::string version;  // of the dump: "2.10"
  std::string host;
  uint64_t written_ns = 0;  // the file, wall clock
  std::map<std::string, FlightGroup> groups;
  std::vector<FlightEntry> entries;  // as they were made
};

// Reads a dump, pickled or JSON. Its rank is the number at the end of the file's name, in front of
// the ending. Errors name the file and what is missing.
Result<FlightDump> ReadFlightDump(const std::string& path);

// The dumps that these files and folders are; of a folder those whose names end with a number.
Result<std::vector<FlightDump>> ReadFlightDumps(const std::vector<std::string>& paths);

}  // namespace deja::cli

#endif  // DEJA_CLI_IMPORT_FLIGHT_DUMP_H_
