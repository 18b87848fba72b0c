// The report of a replay: lines of JSON that the replay library writes inside the program
// (replayer/report/report.h). The program may damage it: nothing in it is trusted to be there.
//
// Values; any thread.
#ifndef DEJA_CLI_REPLAY_WATCH_REPLAY_REPORT_H_
#define DEJA_CLI_REPLAY_WATCH_REPLAY_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace deja::cli {

// The objects with a "kind" among the report's first 10,000 lines, in their order. `scratch`: the
// replay's scratch folder.
std::vector<nlohmann::json> ReadReport(const std::string& scratch);

// The first line of that kind; null: none.
const nlohmann::json* FindLine(const std::vector<nlohmann::json>& lines, const std::string& kind);

// A value of a line; 0 or "" where there is no line, no such key or another type.
uint64_t NumberIn(const nlohmann::json* line, const char* key);
std::string TextIn(const nlohmann::json& line, const char* key);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_REPLAY_REPORT_H_
