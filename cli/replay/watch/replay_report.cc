#include "cli/replay/watch/replay_report.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace deja::cli {
namespace {

using nlohmann::json;

constexpr size_t kMaxReportLines = 10000;
constexpr size_t kMaxReportBytes = 64 << 20;

// The beginning of the file, as a stream; the program may have put anything in its place.
std::istringstream BeginningOf(const std::string& path) {
  struct stat info {};
  std::string text;
  if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    text.resize(std::min(static_cast<size_t>(info.st_size), kMaxReportBytes));
    std::ifstream in(path, std::ios::binary);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  }
  return std::istringstream(std::move(text));
}

}  // namespace

std::vector<json> ReadReport(const std::string& scratch) {
  std::vector<json> lines;
  std::istringstream in = BeginningOf(scratch + "/report.jsonl");
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
  if (line == nullptr || !line->contains(key) || !(*line)[key].is_number_integer()) return 0;
  return (*line)[key].get<uint64_t>();
}

std::string TextIn(const json& line, const char* key) {
  return line.contains(key) && line[key].is_string() ? line[key].get<std::string>() : "";
}

}  // namespace deja::cli
