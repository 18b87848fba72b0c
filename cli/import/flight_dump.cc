#include "cli/import/flight_dump.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "cli/import/unpickle.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "common/os/file.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{2} << 30;

Result<std::string> ReadText(const std::string& path, uint64_t& written_ns) {
  DEJA_ASSIGN_OR_RETURN(const auto file, OpenReadFile(path));
  if (file->size() > kMostBytes)
    return Fail(ErrorCode::kLimit, fmt::format("{}: it has more than 2 GB", path));
  std::string text(file->size(), '\0');
  DEJA_ASSIGN_OR_RETURN(const size_t count,
                        file->ReadAt(0, std::as_writable_bytes(std::span(text))));
  text.resize(count);
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0)
    written_ns = static_cast<uint64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 +
                 static_cast<uint64_t>(facts.st_mtim.tv_nsec);
  return text;
}

// The digits at the end of the name: of "nccl_trace_rank_12" and "rank_12.json".
std::optional<uint32_t> RankOf(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (name.extension() == ".json" || name.extension() == ".pkl" || name.extension() == ".pickle")
    name = name.stem();
  const std::string text = name.string();
  size_t begin = text.size();
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
  uint32_t rank = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), rank);
  if (begin == text.size() || error != std::errc()) return std::nullopt;
  return rank;
}

std::string Text(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return "";
  if (it->is_string()) return it->get<std::string>();
  return it->is_number_integer() ? fmt::format("{}", it->get<int64_t>()) : "";
}

// The nearest number of its type to any number that a file may have.
uint64_t Whole(const nlohmann::json& number) {
  if (number.is_number_unsigned()) return number.get<uint64_t>();
  if (!number.is_number_float())
    return static_cast<uint64_t>(std::max<int64_t>(number.get<int64_t>(), 0));
  constexpr double kBeyond = 0x1p64;
  const double value = number.get<double>();
  if (value >= kBeyond) return std::numeric_limits<uint64_t>::max();
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

std::optional<uint64_t> Number(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  return Whole(*it);
}

bool IsTrue(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

// "[0, 1, 2]", or a list.
std::vector<uint32_t> RanksIn(const nlohmann::json& ranks) {
  std::vector<uint32_t> result;
  if (ranks.is_array()) {
    for (const auto& rank : ranks)
      if (rank.is_number_unsigned() || rank.is_number_integer())
        result.push_back(rank.get<uint32_t>());
    return result;
  }
  if (!ranks.is_string()) return result;
  const std::string& text = ranks.get_ref<const std::string&>();
  for (size_t i = 0; i < text.size();) {
    uint32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), rank);
    if (error == std::errc()) result.push_back(rank);
    i = error == std::errc() ? static_cast<size_t>(end - text.data()) : i + 1;
  }
  return result;
}

// Elements of all tensors of one side.
uint64_t CountIn(const nlohmann::json& entry, const char* key) {
  const auto sizes = entry.find(key);
  uint64_t all = 0;
  if (sizes == entry.end() || !sizes->is_array()) return 0;
  for (const auto& tensor : *sizes) {
    if (!tensor.is_array()) continue;
    uint64_t count = 1;
    for (const auto& size : tensor) count *= size.is_number() ? Whole(size) : 1;
    all += count;
  }
  return all;
}

std::string TypeIn(const nlohmann::json& entry) {
  for (const char* key : {"input_dtypes", "output_dtypes"}) {
    const auto types = entry.find(key);
    if (types != entry.end() && types->is_array() && !types->empty() && types->front().is_string())
      return types->front().get<std::string>();
  }
  return "";
}

std::vector<FlightFrame> FramesIn(const nlohmann::json& entry) {
  std::vector<FlightFrame> frames;
  const auto listed = entry.find("frames");
  if (listed == entry.end() || !listed->is_array()) return frames;
  for (const auto& frame : *listed)
    if (frame.is_object())
      frames.push_back({Text(frame, "name"), Text(frame, "filename"),
                        static_cast<uint32_t>(Number(frame, "line").value_or(0))});
  return frames;
}

// "nccl:send 0->1": the name, and the peer of a transfer.
void TakeName(std::string_view text, FlightEntry& entry) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) text.remove_prefix(colon + 1);
  const size_t space = text.find(' ');
  entry.name = std::string(text.substr(0, space));
  if (space == std::string_view::npos) return;
  const std::string_view pair = text.substr(space + 1);
  const size_t arrow = std::min(pair.find("->"), pair.find("<-"));
  uint32_t peer = 0;
  if (arrow == std::string_view::npos) return;
  const auto [end, error] =
      std::from_chars(pair.data() + arrow + 2, pair.data() + pair.size(), peer);
  if (error == std::errc()) entry.peer = peer;
}

FlightEntry EntryOf(const nlohmann::json& its) {
  FlightEntry entry;
  if (const auto group = its.find("process_group");
      group != its.end() && group->is_array() && !group->empty() && group->front().is_string())
    entry.group = group->front().get<std::string>();
  if (const auto group = its.find("process_group");
      group != its.end() && group->is_array() && group->size() > 1 && (*group)[1].is_string())
    entry.description = (*group)[1].get<std::string>();
  TakeName(Text(its, "profiling_name"), entry);
  entry.is_transfer = IsTrue(its, "is_p2p");
  entry.number = Number(its, entry.is_transfer ? "p2p_seq_id" : "collective_seq_id").value_or(0);
  entry.order = Number(its, "record_id").value_or(0);
  entry.created_ns = Number(its, "time_created_ns").value_or(0);
  entry.completed_ns = Number(its, "time_discovered_completed_ns");
  // Gloo's operations stay scheduled in a dump, and are retired when they are done.
  const bool is_gloo = Text(its, "profiling_name").starts_with("gloo:");
  entry.is_completed = Text(its, "state") == "completed" || (is_gloo && IsTrue(its, "retired"));
  entry.timeout_ms = Number(its, "timeout_ms").value_or(0);
  entry.input_count = CountIn(its, "input_sizes");
  entry.output_count = CountIn(its, "output_sizes");
  entry.dtype = TypeIn(its);
  entry.frames = FramesIn(its);
  return entry;
}

Result<nlohmann::json> Parse(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return Unpickle(text);
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return Fail(ErrorCode::kForeign, "its JSON is not well formed");
  return parsed;
}

}  // namespace

Result<FlightDump> ReadFlightDump(const std::string& path) {
  FlightDump dump;
  dump.path = path;
  const auto rank = RankOf(path);
  if (!rank)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("importing: {}: its name does not end with the number of its rank; "
                            "name it like nccl_trace_rank_0",
                            path));
  dump.rank = *rank;
  DEJA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, dump.written_ns));
  const auto parsed = Parse(text);
  if (!parsed)
    return Fail(parsed.error().code,
                fmt::format("importing: {}: it is no dump of the Flight Recorder: {}", path,
                            parsed.error().message));
  if (!parsed->is_object() || !parsed->contains("entries") || !(*parsed)["entries"].is_array())
    return Fail(ErrorCode::kForeign,
                fmt::format("importing: {}: it is no dump of the Flight Recorder: it has no "
                            "entries",
                            path));
  dump.version = Text(*parsed, "version");
  dump.host = Text(*parsed, "host_name");
  if (const auto groups = parsed->find("pg_config"); groups != parsed->end() && groups->is_object())
    for (const auto& [name, facts] : groups->items())
      if (facts.is_object())
        dump.groups[name] = {Text(facts, "desc"), facts.contains("ranks")
                                                      ? RanksIn(facts["ranks"])
                                                      : std::vector<uint32_t>{}};
  for (const auto& entry : (*parsed)["entries"])
    if (entry.is_object()) dump.entries.push_back(EntryOf(entry));
  std::stable_sort(dump.entries.begin(), dump.entries.end(),
                   [](const auto& a, const auto& b) { return a.order < b.order; });
  return dump;
}

Result<std::vector<FlightDump>> ReadFlightDumps(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> of_folder;
    for (const auto& file : fs::directory_iterator(path, error))
      if (file.is_regular_file(error) && RankOf(file.path().string()))
        of_folder.push_back(file.path().string());
    if (of_folder.empty())
      return Fail(ErrorCode::kNotFound,
                  fmt::format("importing: {}: no file in it has a name that ends with a rank's "
                              "number",
                              path));
    std::sort(of_folder.begin(), of_folder.end());
    files.insert(files.end(), of_folder.begin(), of_folder.end());
  }
  std::vector<FlightDump> dumps;
  std::map<uint32_t, std::string> owners;
  Progress progress("reading the dumps", ProgressUnit::kFiles);
  for (const std::string& file : files) {
    DEJA_ASSIGN_OR_RETURN(FlightDump dump, ReadFlightDump(file));
    const auto [owner, added] = owners.try_emplace(dump.rank, file);
    if (!added)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("importing: {}: it is of rank {}, as {} is; give each rank once",
                              file, dump.rank, owner->second));
    dumps.push_back(std::move(dump));
    progress.Update(dumps.size(), files.size());
  }
  std::sort(dumps.begin(), dumps.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return dumps;
}

}  // namespace deja::cli
