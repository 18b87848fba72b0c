#include "cli/replay/watch/replay_report.h"

#include <fstream>

namespace deja::cli {
namespace {

using nlohmann::json;

constexpr size_t kMaxReportLines = 10000;

}  // namespace

std::vector<json> ReadReport(const std::string& scratch) {
  std::vector<json> lines;
  std::ifstream in(scratch + "/report.jsonl");
  std::string line;
  while (lines.size() < kMaxReportLines && std::getline(in, line)) {
    json value = json::parse(line, nullptr, false);
    if (value.is_object() && value.contains("kind") && value["kind"].is_string())
      lines.push_back(std::move(value));
  }
  return lines;
}

const json* FindLine(const std::vector<json>& lines, const std::string& kind) {
  for (const json& line : lines)
    if (line["kind"] == kind) return &line;
  return nullptr;
}

uint64_t NumberIn(const json* line, const char* key) {
  if (line == nullptr || !line->contains(key) || !(*line)[key].is_number()) return 0;
  return (*line)[key].get<uint64_t>();
}

std::string TextIn(const json& line, const char* key) {
  return line.contains(key) && line[key].is_string() ? line[key].get<std::string>() : "";
}

}  // namespace deja::cli
